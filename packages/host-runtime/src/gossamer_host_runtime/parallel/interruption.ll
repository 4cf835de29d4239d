; Tells a loop whether to stop, because a signal handler has raised, and whether its portions are too long.
; `interruption.py` says why.

%state = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, i64, ptr, ptr, ptr }

; Not 'internal', as the value is unknown to LLVM: it is replaced before the code is loaded.
@gossamer_interruption = weak hidden constant i64 u0x5F6C6F6F705F7367, align 8

; Returns 1 if the loop is to stop, -1 after a short portion, -2 after a long one. `since` is the time of the
; last call for the chunk, 0 at first.
define i64 @gossamer_is_interrupted(ptr %since) nounwind noinline optnone {
entry:
  %time = alloca { i64, i64 }, align 8
  %place = load i64, ptr @gossamer_interruption, align 8
  %state = inttoptr i64 %place to ptr
  %clock = load ptr, ptr %state, align 8
  %ignored = call i32 %clock(i32 1, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest.at = getelementptr { i64, i64 }, ptr %time, i32 0, i32 1
  %rest = load i64, ptr %rest.at, align 8
  %scaled = mul i64 %seconds, 1000000000
  %now = add i64 %scaled, %rest
  %before = load i64, ptr %since, align 8
  store i64 %now, ptr %since, align 8
  %is.first = icmp eq i64 %before, 0
  br i1 %is.first, label %first, label %measured
first:
  ret i64 0
measured:
  %elapsed = sub i64 %now, %before
  ; After a portion of less than 0.1 ms, the next one has 8 times as many iterations. If they take equally
  ; long, that is less than 1 ms.
  %is.short = icmp slt i64 %elapsed, 100000
  br i1 %is.short, label %short, label %long
short:
  ret i64 -1
long:
  %self.at = getelementptr %state, ptr %state, i32 0, i32 1
  %self = load ptr, ptr %self.at, align 8
  %thread = call i64 %self()
  %main.at = getelementptr %state, ptr %state, i32 0, i32 7
  %main = load atomic i64, ptr %main.at monotonic, align 8
  %is.main = icmp eq i64 %thread, %main
  ; After a portion of more than 100 ms, the next one has half as many iterations.
  %too.long = icmp sgt i64 %elapsed, 100000000
  %answer = select i1 %too.long, i64 -2, i64 0
  br i1 %is.main, label %main.thread, label %go.on
main.thread:
  %handled.at = getelementptr %state, ptr %state, i32 0, i32 8
  %handled = load i64, ptr %handled.at, align 8
  %pause = sub i64 %now, %handled
  ; Signals are checked every 50 ms: taking the GIL may mean waiting for another thread.
  %is.due = icmp sge i64 %pause, 50000000
  br i1 %is.due, label %due, label %go.on
due:
  store i64 %now, ptr %handled.at, align 8
  %ensure.at = getelementptr %state, ptr %state, i32 0, i32 2
  %ensure = load ptr, ptr %ensure.at, align 8
  %release.at = getelementptr %state, ptr %state, i32 0, i32 6
  %release = load ptr, ptr %release.at, align 8
  %handle.at = getelementptr %state, ptr %state, i32 0, i32 3
  %handle = load ptr, ptr %handle.at, align 8
  %gil = call i32 %ensure()
  %failed = call i32 %handle()
  %is.raised = icmp ne i32 %failed, 0
  br i1 %is.raised, label %raised, label %unchanged
raised:
  %fetch.at = getelementptr %state, ptr %state, i32 0, i32 4
  %fetch = load ptr, ptr %fetch.at, align 8
  %normalize.at = getelementptr %state, ptr %state, i32 0, i32 5
  %normalize = load ptr, ptr %normalize.at, align 8
  %type = getelementptr %state, ptr %state, i32 0, i32 9
  %value = getelementptr %state, ptr %state, i32 0, i32 10
  %traceback = getelementptr %state, ptr %state, i32 0, i32 11
  call void %fetch(ptr %type, ptr %value, ptr %traceback)
  call void %normalize(ptr %type, ptr %value, ptr %traceback)
  call void %release(i32 %gil)
  ret i64 1
unchanged:
  call void %release(i32 %gil)
  br label %go.on
go.on:
  ret i64 %answer
}

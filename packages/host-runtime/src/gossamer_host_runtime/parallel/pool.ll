; A persistent pool of threads: a parallel region runs the function on the caller and on sleeping or spinning
; workers. `pool.py` says what it is for, and loads this text after a definition of `@pause`.
;
; The type %state has the fields below, in cache lines of their own (only the caller that owns the pool uses
; the last two):
;
;   0 busy      1 while a caller owns the pool. Taking it (acquire) and giving it back (release) order what
;               successive owners do to the fields that are not atomic.
;   1 gate      The region: its number in the upper 20 bits, in the lower 12 how many more workers may enter.
;               A worker enters by decrementing the latter with compare-and-swap (acquire). So it reads
;               `cpu` (the one of the caller), `function`, `data` and `spin` only after the caller wrote them
;               and published the gate, and before the caller can overwrite them: the caller waits for all
;               that have entered. A worker on the caller's CPU has suspended it, and would keep it from
;               going on (measured: by 20 of 22 microseconds for a region) if it spun afterwards. A worker
;               that is suspended for 2**20 regions and finds the same gate may enter as well: the number only
;               keeps a worker from entering a region twice, and from sleeping when there is a new one.
;   2 pending   The workers that left, negative, until the caller has closed the region and added those that
;               entered: from then on, those that it still waits for. Leaving releases what the worker wrote.
;               The caller sets bit 30 before it sleeps; the last worker wakes it if that bit is set.
;   3 sleepers  Workers that sleep or are about to. A worker counts itself and then compares the gate, in the
;               futex; the caller publishes the gate and then reads the count. Both orders are sequentially
;               consistent, so either the worker finds the new gate or the caller finds the worker: no wake-up
;               is lost. A count that is too large only costs a system call.
;   4 started   The workers of this process, and the regions until threads are started again after that has
;               failed.

%line = type [7 x i64]
%config = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, i64, i64, [16 x i64] }
%state = type { { i64, %line }, { i32, i32, ptr, ptr, i64, [4 x i64] }, { i64, %line }, { i64, %line },
                { i32, i32 } }

; Not 'internal', as the value is unknown to LLVM: it is replaced before the code is loaded.
@gossamer_pool = weak hidden constant i64 u0x5F6C6F6F705F7367, align 8

declare i32 @llvm.umin.i32(i32, i32)
declare i32 @llvm.umax.i32(i32, i32)

define void @gossamer_parallel(ptr %function, ptr %data, i32 %threads, i32 %flags) nounwind {
entry:
  %place = load i64, ptr @gossamer_pool, align 8
  %config = inttoptr i64 %place to ptr
  %state = load ptr, ptr %config, align 8
  %limited = call i32 @llvm.umin.i32(i32 %threads, i32 4096)
  %positive = call i32 @llvm.umax.i32(i32 %limited, i32 1)
  %wanted = sub i32 %positive, 1
  %is.single = icmp eq i32 %wanted, 0
  br i1 %is.single, label %alone, label %acquire
acquire:
  %taken = cmpxchg ptr %state, i32 0, i32 1 acquire monotonic
  %is.owner = extractvalue { i32, i1 } %taken, 1
  br i1 %is.owner, label %start, label %alone
alone:
  call void %function(ptr %data)
  ret void
start:
  %started.at = getelementptr %state, ptr %state, i32 0, i32 4, i32 0
  %places = call i32 @start_workers(ptr %config, ptr %started.at, i32 %wanted)
  %has.none = icmp eq i32 %places, 0
  br i1 %has.none, label %without, label %publish
without:
  call void %function(ptr %data)
  br label %release
publish:
  %gate = getelementptr %state, ptr %state, i32 0, i32 1, i32 0
  %function.at = getelementptr %state, ptr %state, i32 0, i32 1, i32 2
  %data.at = getelementptr %state, ptr %state, i32 0, i32 1, i32 3
  %pending = getelementptr %state, ptr %state, i32 0, i32 2
  %sleepers = getelementptr %state, ptr %state, i32 0, i32 3
  store ptr %function, ptr %function.at, align 8
  store ptr %data, ptr %data.at, align 8
  %spin.at = getelementptr %state, ptr %state, i32 0, i32 1, i32 4
  %spin = call i64 @spin_time(ptr %config, i32 %wanted)
  store i64 %spin, ptr %spin.at, align 8
  %cpu.at = getelementptr %state, ptr %state, i32 0, i32 1, i32 1
  %cpu = call i32 @current_cpu(ptr %config)
  store i32 %cpu, ptr %cpu.at, align 4
  %last = load atomic i32, ptr %gate monotonic, align 4
  %number = and i32 %last, -4096
  %next = add i32 %number, 4096
  %opened = or i32 %next, %places
  %previous = atomicrmw xchg ptr %gate, i32 %opened seq_cst
  %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
  %started = load i32, ptr %started.at, align 4
  %awake = sub i32 %started, %asleep
  %missing = sub i32 %places, %awake
  %is.missing = icmp sgt i32 %missing, 0
  br i1 %is.missing, label %wake, label %run
wake:
  call void @futex(ptr %config, ptr %gate, i32 129, i32 %missing)
  br label %run
run:
  call void %function(ptr %data)
  %closed = atomicrmw xchg ptr %gate, i32 %next monotonic
  %left = and i32 %closed, 4095
  %entered = sub i32 %places, %left
  %were.none = icmp eq i32 %entered, 0
  br i1 %were.none, label %release, label %join
join:
  %before = atomicrmw add ptr %pending, i32 %entered acq_rel
  %running = add i32 %before, %entered
  %are.none = icmp eq i32 %running, 0
  br i1 %are.none, label %release, label %wait
wait:
  call void @wait_for_workers(ptr %config, ptr %pending, i64 %spin)
  br label %release
release:
  store atomic i32 0, ptr %state release, align 4
  ret void
}

; Waits until no worker is left in the region that was closed.
define internal void @wait_for_workers(ptr %config, ptr %pending, i64 %spin) nounwind {
entry:
  %is.short = icmp eq i64 %spin, 0
  br i1 %is.short, label %mark, label %begin
begin:
  %start = call i64 @now(ptr %config)
  %end = add i64 %start, %spin
  br label %look
look:
  %step = phi i32 [ 0, %begin ], [ %step.next, %again ], [ 0, %clock ]
  %found = load atomic i32, ptr %pending acquire, align 4
  %is.done = icmp eq i32 %found, 0
  br i1 %is.done, label %return, label %again.or.clock
again.or.clock:
  call void @pause()
  %step.next = add i32 %step, 1
  %is.tick = icmp eq i32 %step.next, 16
  br i1 %is.tick, label %clock, label %again
again:
  br label %look
clock:
  %time = call i64 @now(ptr %config)
  %is.over = icmp sge i64 %time, %end
  br i1 %is.over, label %mark, label %look
mark:
  %old = atomicrmw or ptr %pending, i32 1073741824 acq_rel
  br label %check
check:
  %current = load atomic i32, ptr %pending acquire, align 4
  %is.last = icmp eq i32 %current, 1073741824
  br i1 %is.last, label %clear, label %sleep
sleep:
  call void @futex(ptr %config, ptr %pending, i32 128, i32 %current)
  br label %check
clear:
  store atomic i32 0, ptr %pending monotonic, align 4
  br label %return
return:
  ret void
}

define internal ptr @worker(ptr %config) nounwind {
entry:
  %state = load ptr, ptr %config, align 8
  %gate = getelementptr %state, ptr %state, i32 0, i32 1, i32 0
  %function.at = getelementptr %state, ptr %state, i32 0, i32 1, i32 2
  %data.at = getelementptr %state, ptr %state, i32 0, i32 1, i32 3
  %spin.at = getelementptr %state, ptr %state, i32 0, i32 1, i32 4
  %cpu.at = getelementptr %state, ptr %state, i32 0, i32 1, i32 1
  %pending = getelementptr %state, ptr %state, i32 0, i32 2
  %sleepers = getelementptr %state, ptr %state, i32 0, i32 3
  br label %look
look:
  %seen = phi i32 [ -1, %entry ], [ %seen, %try ], [ %seen, %again ], [ %seen, %woken ],
                  [ %seen, %clock ], [ %number, %leave ], [ %number, %stay ]
  %end = phi i64 [ 0, %entry ], [ %end, %try ], [ %end, %again ], [ 0, %woken ],
                 [ %end, %clock ], [ 0, %leave ], [ %later, %stay ]
  %step = phi i32 [ 0, %entry ], [ 0, %try ], [ %step.next, %again ], [ 0, %woken ],
                  [ 0, %clock ], [ 0, %leave ], [ 0, %stay ]
  %found = load atomic i32, ptr %gate monotonic, align 4
  %number = and i32 %found, -4096
  %is.open = call i1 @is_open(i32 %found, i32 %seen)
  br i1 %is.open, label %try, label %rest
try:
  %fewer = sub i32 %found, 1
  %swapped = cmpxchg ptr %gate, i32 %found, i32 %fewer acquire monotonic
  %is.inside = extractvalue { i32, i1 } %swapped, 1
  br i1 %is.inside, label %run, label %look
run:
  %function = load ptr, ptr %function.at, align 8
  %data = load ptr, ptr %data.at, align 8
  %spin = load i64, ptr %spin.at, align 8
  %callers.cpu = load i32, ptr %cpu.at, align 4
  call void %function(ptr %data)
  %before = atomicrmw sub ptr %pending, i32 1 acq_rel
  %is.last = icmp eq i32 %before, 1073741825
  br i1 %is.last, label %wake, label %leave
wake:
  call void @futex(ptr %config, ptr %pending, i32 129, i32 1)
  br label %leave
leave:
  %cpu = call i32 @current_cpu(ptr %config)
  %is.same = icmp eq i32 %cpu, %callers.cpu
  %is.short = icmp eq i64 %spin, 0
  %must.sleep = or i1 %is.same, %is.short
  br i1 %must.sleep, label %look, label %stay
stay:
  %time = call i64 @now(ptr %config)
  %later = add i64 %time, %spin
  br label %look
rest:
  %is.asleep = icmp eq i64 %end, 0
  br i1 %is.asleep, label %count, label %pause
pause:
  call void @pause()
  %step.next = add i32 %step, 1
  %is.tick = icmp eq i32 %step.next, 16
  br i1 %is.tick, label %clock, label %again
again:
  br label %look
clock:
  %time.now = call i64 @now(ptr %config)
  %is.over = icmp sge i64 %time.now, %end
  br i1 %is.over, label %count, label %look
count:
  %asleep = atomicrmw add ptr %sleepers, i32 1 seq_cst
  %current = load atomic i32, ptr %gate seq_cst, align 4
  %is.reopened = call i1 @is_open(i32 %current, i32 %seen)
  br i1 %is.reopened, label %woken, label %sleep
sleep:
  call void @futex(ptr %config, ptr %gate, i32 128, i32 %current)
  br label %woken
woken:
  %fewer.asleep = atomicrmw sub ptr %sleepers, i32 1 monotonic
  br label %look
}

; Whether a worker may enter, given the gate and the number of the last region that it has entered.
define internal i1 @is_open(i32 %gate, i32 %seen) nounwind {
  %places = and i32 %gate, 4095
  %number = and i32 %gate, -4096
  %has.place = icmp ne i32 %places, 0
  %is.new = icmp ne i32 %number, %seen
  %is.open = and i1 %has.place, %is.new
  ret i1 %is.open
}

; Starts workers until there are as many as wanted, and returns how many of these there are.
define internal i32 @start_workers(ptr %config, ptr %started.at, i32 %wanted) nounwind {
entry:
  %id = alloca i64, align 8
  %mask = alloca [16 x i64], align 8
  %started = load i32, ptr %started.at, align 4
  %is.enough = icmp uge i32 %started, %wanted
  br i1 %is.enough, label %enough, label %check
enough:
  ret i32 %wanted
check:
  %retry.at = getelementptr i32, ptr %started.at, i32 1
  %retry = load i32, ptr %retry.at, align 4
  %has.failed = icmp ne i32 %retry, 0
  br i1 %has.failed, label %later, label %block
later:
  %sooner = sub i32 %retry, 1
  store i32 %sooner, ptr %retry.at, align 4
  ret i32 %started
block:
  %create.at = getelementptr %config, ptr %config, i32 0, i32 1
  %create = load ptr, ptr %create.at, align 8
  %detach.at = getelementptr %config, ptr %config, i32 0, i32 2
  %detach = load ptr, ptr %detach.at, align 8
  %sigmask.at = getelementptr %config, ptr %config, i32 0, i32 3
  %sigmask = load ptr, ptr %sigmask.at, align 8
  %signals = getelementptr %config, ptr %config, i32 0, i32 10
  %blocked = call i32 %sigmask(i32 2, ptr %signals, ptr %mask)
  br label %next
next:
  %count = phi i32 [ %started, %block ], [ %more, %detached ]
  %is.all = icmp eq i32 %count, %wanted
  br i1 %is.all, label %unblock, label %one
one:
  %failed = call i32 %create(ptr %id, ptr null, ptr @worker, ptr %config)
  %is.started = icmp eq i32 %failed, 0
  br i1 %is.started, label %detached, label %missing
detached:
  %thread = load i64, ptr %id, align 8
  %ignored = call i32 %detach(i64 %thread)
  %more = add i32 %count, 1
  store i32 %more, ptr %started.at, align 4
  br label %next
missing:
  store i32 1000, ptr %retry.at, align 4
  br label %unblock
unblock:
  %restored = call i32 %sigmask(i32 2, ptr %mask, ptr null)
  ret i32 %count
}

; The nanoseconds that threads of a region may spin: none if they outnumber the CPUs.
define internal i64 @spin_time(ptr %config, i32 %wanted) nounwind {
  %spin.at = getelementptr %config, ptr %config, i32 0, i32 8
  %spin = load atomic i64, ptr %spin.at monotonic, align 8
  %cpus.at = getelementptr %config, ptr %config, i32 0, i32 9
  %cpus = load atomic i64, ptr %cpus.at monotonic, align 8
  %others = zext i32 %wanted to i64
  %fits = icmp slt i64 %others, %cpus
  %result = select i1 %fits, i64 %spin, i64 0
  ret i64 %result
}

; The number of the CPU that this thread runs on, -1 if the system does not tell.
define internal i32 @current_cpu(ptr %config) nounwind {
  %getcpu.at = getelementptr %config, ptr %config, i32 0, i32 6
  %getcpu = load ptr, ptr %getcpu.at, align 8
  %result = call i32 %getcpu()
  ret i32 %result
}

; The monotonic time in nanoseconds.
define internal i64 @now(ptr %config) nounwind {
  %time = alloca { i64, i64 }, align 8
  %clock.at = getelementptr %config, ptr %config, i32 0, i32 5
  %clock = load ptr, ptr %clock.at, align 8
  %failed = call i32 %clock(i32 1, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest.at = getelementptr { i64, i64 }, ptr %time, i32 0, i32 1
  %rest = load i64, ptr %rest.at, align 8
  %scaled = mul i64 %seconds, 1000000000
  %result = add i64 %scaled, %rest
  ret i64 %result
}

; FUTEX_WAIT_PRIVATE is 128, FUTEX_WAKE_PRIVATE 129. Callers look again, whatever the reason for returning.
define internal void @futex(ptr %config, ptr %word, i32 %operation, i32 %value) nounwind {
  %syscall.at = getelementptr %config, ptr %config, i32 0, i32 4
  %syscall = load ptr, ptr %syscall.at, align 8
  %number.at = getelementptr %config, ptr %config, i32 0, i32 7
  %number = load i64, ptr %number.at, align 8
  %result = call i64 (i64, ...) %syscall(i64 %number, ptr %word, i32 %operation, i32 %value, ptr null)
  ret void
}

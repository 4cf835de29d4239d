; A parallel region with threads of its own. If a thread cannot be started, the others do its work: a region
; distributes its work dynamically.

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)

define internal ptr @worker(ptr %work) nounwind {
  %function = load ptr, ptr %work
  %field = getelementptr { ptr, ptr }, ptr %work, i32 0, i32 1
  %data = load ptr, ptr %field
  call void %function(ptr %data)
  ret ptr null
}

define void @gossamer_parallel(ptr %function, ptr %data, i32 %threads, i32 %flags) nounwind {
entry:
  %work = alloca { ptr, ptr }, align 8
  store ptr %function, ptr %work
  %field = getelementptr { ptr, ptr }, ptr %work, i32 0, i32 1
  store ptr %data, ptr %field
  %small = call i32 @llvm.umin.i32(i32 %threads, i32 4096)
  %positive = call i32 @llvm.umax.i32(i32 %small, i32 1)
  %started.max = sub i32 %positive, 1
  %ids = alloca i64, i32 %positive, align 8
  br label %start
start:
  %count = phi i32 [ 0, %entry ], [ %more, %create ]
  %all = icmp eq i32 %count, %started.max
  br i1 %all, label %run, label %create
create:
  %id = getelementptr i64, ptr %ids, i32 %count
  %failed = call i32 @pthread_create(ptr %id, ptr null, ptr @worker, ptr %work)
  %more = add i32 %count, 1
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %start, label %run
run:
  call void %function(ptr %data)
  br label %join
join:
  %left = phi i32 [ %count, %run ], [ %previous, %wait ]
  %none = icmp eq i32 %left, 0
  br i1 %none, label %done, label %wait
wait:
  %previous = sub i32 %left, 1
  %slot = getelementptr i64, ptr %ids, i32 %previous
  %thread = load i64, ptr %slot
  %joined = call i32 @pthread_join(i64 %thread, ptr null)
  br label %join
done:
  ret void
}

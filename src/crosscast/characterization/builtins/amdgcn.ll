; Work-item functions of OpenCL on AMD's GPUs, by LLVM's intrinsics. Sizes are not known to the compiler.

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workitem.id.z()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare i32 @llvm.amdgcn.workgroup.id.z()
declare void @llvm.amdgcn.s.barrier()
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)

define i64 @_Z12get_local_idj(i32 %dimension) alwaysinline {
  switch i32 %dimension, label %none [
    i32 0, label %x
    i32 1, label %y
    i32 2, label %z
  ]
x:
  %idx = call range(i32 0, 1024) i32 @llvm.amdgcn.workitem.id.x()
  br label %some
y:
  %idy = call range(i32 0, 1024) i32 @llvm.amdgcn.workitem.id.y()
  br label %some
z:
  %idz = call range(i32 0, 1024) i32 @llvm.amdgcn.workitem.id.z()
  br label %some
some:
  %id = phi i32 [ %idx, %x ], [ %idy, %y ], [ %idz, %z ]
  %wide = zext i32 %id to i64
  ret i64 %wide
none:
  ret i64 0
}

define i64 @_Z12get_group_idj(i32 %dimension) alwaysinline {
  switch i32 %dimension, label %none [
    i32 0, label %x
    i32 1, label %y
    i32 2, label %z
  ]
x:
  %idx = call i32 @llvm.amdgcn.workgroup.id.x()
  br label %some
y:
  %idy = call i32 @llvm.amdgcn.workgroup.id.y()
  br label %some
z:
  %idz = call i32 @llvm.amdgcn.workgroup.id.z()
  br label %some
some:
  %id = phi i32 [ %idx, %x ], [ %idy, %y ], [ %idz, %z ]
  %wide = zext i32 %id to i64
  ret i64 %wide
none:
  ret i64 0
}

define i64 @_Z14get_local_sizej(i32 %dimension) alwaysinline {
  %size = call i64 asm "", "=s"()
  ret i64 %size
}

define i64 @_Z14get_num_groupsj(i32 %dimension) alwaysinline {
  %count = call i64 asm "", "=s"()
  ret i64 %count
}

define i64 @_Z15get_global_sizej(i32 %dimension) alwaysinline {
  %size = call i64 asm "", "=s"()
  ret i64 %size
}

define i64 @_Z13get_global_idj(i32 %dimension) alwaysinline {
  %group = call i64 @_Z12get_group_idj(i32 %dimension)
  %size = call i64 @_Z14get_local_sizej(i32 %dimension)
  %item = call i64 @_Z12get_local_idj(i32 %dimension)
  %before = mul i64 %group, %size
  %id = add i64 %before, %item
  ret i64 %id
}

define void @_Z7barrierj(i32 %memory) alwaysinline {
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  ret void
}

define i32 @_Z3minii(i32 %a, i32 %b) alwaysinline {
  %least = call i32 @llvm.smin.i32(i32 %a, i32 %b)
  ret i32 %least
}

define i32 @_Z3maxii(i32 %a, i32 %b) alwaysinline {
  %most = call i32 @llvm.smax.i32(i32 %a, i32 %b)
  ret i32 %most
}

; The nearest codeword of each vector; called by native.py, which says what the arrays are.
;
; search visits leaf after leaf of 64 codewords. For each vector it keeps the smallest squared
; distance and the lowest code that has it. With boxes, it first bounds the distance to every
; box from below, begins at the nearest box and skips those that can't hold anything nearer.

declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare <16 x float> @llvm.maxnum.v16f32(<16 x float>, <16 x float>)
declare <16 x float> @llvm.minnum.v16f32(<16 x float>, <16 x float>)
declare float @llvm.vector.reduce.fmin.v16f32(<16 x float>)
declare i32 @omp_get_thread_num()

; The squared distances to a leaf's codewords go to %scratch; the smallest is returned.
define internal float @leaf_distances(ptr %x, ptr %leaf, i64 %dim, ptr %scratch) alwaysinline {
entry:
  br label %coordinate
coordinate:
  %d = phi i64 [ 0, %entry ], [ %d.next, %coordinate ]
  %sum0 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum0.next, %coordinate ]
  %sum1 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum1.next, %coordinate ]
  %sum2 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum2.next, %coordinate ]
  %sum3 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum3.next, %coordinate ]
  %x.at = getelementptr float, ptr %x, i64 %d
  %x.one = load float, ptr %x.at
  %x.first = insertelement <16 x float> poison, float %x.one, i64 0
  %x.all = shufflevector <16 x float> %x.first, <16 x float> poison, <16 x i32> zeroinitializer
  %row = shl i64 %d, 6
  %lane0 = add i64 %row, 0
  %at0 = getelementptr float, ptr %leaf, i64 %lane0
  %word0 = load <16 x float>, ptr %at0, align 4
  %gap0 = fsub <16 x float> %x.all, %word0
  %sum0.next = call <16 x float> @llvm.fma.v16f32(<16 x float> %gap0, <16 x float> %gap0, <16 x float> %sum0)
  %lane1 = add i64 %row, 16
  %at1 = getelementptr float, ptr %leaf, i64 %lane1
  %word1 = load <16 x float>, ptr %at1, align 4
  %gap1 = fsub <16 x float> %x.all, %word1
  %sum1.next = call <16 x float> @llvm.fma.v16f32(<16 x float> %gap1, <16 x float> %gap1, <16 x float> %sum1)
  %lane2 = add i64 %row, 32
  %at2 = getelementptr float, ptr %leaf, i64 %lane2
  %word2 = load <16 x float>, ptr %at2, align 4
  %gap2 = fsub <16 x float> %x.all, %word2
  %sum2.next = call <16 x float> @llvm.fma.v16f32(<16 x float> %gap2, <16 x float> %gap2, <16 x float> %sum2)
  %lane3 = add i64 %row, 48
  %at3 = getelementptr float, ptr %leaf, i64 %lane3
  %word3 = load <16 x float>, ptr %at3, align 4
  %gap3 = fsub <16 x float> %x.all, %word3
  %sum3.next = call <16 x float> @llvm.fma.v16f32(<16 x float> %gap3, <16 x float> %gap3, <16 x float> %sum3)
  %d.next = add i64 %d, 1
  %more = icmp slt i64 %d.next, %dim
  br i1 %more, label %coordinate, label %done
done:
  %to0 = getelementptr float, ptr %scratch, i64 0
  store <16 x float> %sum0.next, ptr %to0, align 4
  %to1 = getelementptr float, ptr %scratch, i64 16
  store <16 x float> %sum1.next, ptr %to1, align 4
  %to2 = getelementptr float, ptr %scratch, i64 32
  store <16 x float> %sum2.next, ptr %to2, align 4
  %to3 = getelementptr float, ptr %scratch, i64 48
  store <16 x float> %sum3.next, ptr %to3, align 4
  %low01 = call nnan <16 x float> @llvm.minnum.v16f32(<16 x float> %sum0.next, <16 x float> %sum1.next)
  %low23 = call nnan <16 x float> @llvm.minnum.v16f32(<16 x float> %sum2.next, <16 x float> %sum3.next)
  %low = call nnan <16 x float> @llvm.minnum.v16f32(<16 x float> %low01, <16 x float> %low23)
  %least = call nnan float @llvm.vector.reduce.fmin.v16f32(<16 x float> %low)
  ret float %least
}

; The code of the first of 64 distances that equals %least; codes ascend within a leaf.
define internal i64 @first_code(ptr %scratch, ptr %codes, float %least) {
entry:
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %i.next, %look ]
  %at = getelementptr float, ptr %scratch, i64 %i
  %value = load float, ptr %at
  %equal = fcmp ole float %value, %least
  %i.next = add i64 %i, 1
  %last = icmp eq i64 %i.next, 64
  %stop = or i1 %equal, %last
  br i1 %stop, label %found, label %look
found:
  %code.at = getelementptr i64, ptr %codes, i64 %i
  %code = load i64, ptr %code.at
  ret i64 %code
}

; Lower bounds of the squared distances to all boxes, a hair below to allow for rounding;
; returns the number of the nearest box.
define internal i64 @box_bounds(ptr %x, ptr %lows, ptr %highs, ptr %bounds, i64 %dim, i64 %padded) {
entry:
  br label %group
group:
  %g = phi i64 [ 0, %entry ], [ %g.next, %group.end ]
  br label %coordinate
coordinate:
  %d = phi i64 [ 0, %group ], [ %d.next, %coordinate ]
  %sum = phi <16 x float> [ zeroinitializer, %group ], [ %sum.next, %coordinate ]
  %x.at = getelementptr float, ptr %x, i64 %d
  %x.one = load float, ptr %x.at
  %x.first = insertelement <16 x float> poison, float %x.one, i64 0
  %x.all = shufflevector <16 x float> %x.first, <16 x float> poison, <16 x i32> zeroinitializer
  %row = mul i64 %d, %padded
  %lane = add i64 %row, %g
  %low.at = getelementptr float, ptr %lows, i64 %lane
  %high.at = getelementptr float, ptr %highs, i64 %lane
  %low = load <16 x float>, ptr %low.at, align 4
  %high = load <16 x float>, ptr %high.at, align 4
  %below = fsub <16 x float> %low, %x.all
  %above = fsub <16 x float> %x.all, %high
  %out = call nnan <16 x float> @llvm.maxnum.v16f32(<16 x float> %below, <16 x float> %above)
  %gap = call nnan <16 x float> @llvm.maxnum.v16f32(<16 x float> %out, <16 x float> zeroinitializer)
  %sum.next = call <16 x float> @llvm.fma.v16f32(<16 x float> %gap, <16 x float> %gap, <16 x float> %sum)
  %d.next = add i64 %d, 1
  %more = icmp slt i64 %d.next, %dim
  br i1 %more, label %coordinate, label %group.end
group.end:
  %hair.one = insertelement <16 x float> poison, float 0x3FEFFFD600000000, i64 0
  %hair = shufflevector <16 x float> %hair.one, <16 x float> poison, <16 x i32> zeroinitializer
  %bound = fmul <16 x float> %sum.next, %hair
  %bound.at = getelementptr float, ptr %bounds, i64 %g
  store <16 x float> %bound, ptr %bound.at, align 4
  %g.next = add i64 %g, 16
  %g.more = icmp slt i64 %g.next, %padded
  br i1 %g.more, label %group, label %choose
choose:
  br label %look
look:
  %i = phi i64 [ 0, %choose ], [ %i.next, %look ]
  %best = phi float [ 0x7FF0000000000000, %choose ], [ %best.next, %look ]
  %which = phi i64 [ 0, %choose ], [ %which.next, %look ]
  %at = getelementptr float, ptr %bounds, i64 %i
  %value = load float, ptr %at
  %lower = fcmp olt float %value, %best
  %best.next = select i1 %lower, float %value, float %best
  %which.next = select i1 %lower, i64 %i, i64 %which
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %padded
  br i1 %i.more, label %look, label %chosen
chosen:
  ret i64 %which.next
}

define internal void @search(ptr %x, ptr %leaves, ptr %codes, ptr %lows, ptr %highs, ptr %bounds,
                    ptr %result, i64 %n, i64 %dim, i64 %count, i64 %padded, i64 %boxed,
                    i64 %x.step, i64 %result.step) {
entry:
  %scratch = alloca [64 x float], align 64
  %has.boxes = icmp ne i64 %boxed, 0
  %leaf.size = shl i64 %dim, 6
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %vector, label %end
vector:
  %i = phi i64 [ 0, %entry ], [ %i.next, %vector.end ]
  %x.row = mul i64 %i, %x.step
  %x.i = getelementptr float, ptr %x, i64 %x.row
  br i1 %has.boxes, label %bound, label %scan
bound:
  %start = call i64 @box_bounds(ptr %x.i, ptr %lows, ptr %highs, ptr %bounds, i64 %dim, i64 %padded)
  %start.row = mul i64 %start, %leaf.size
  %start.leaf = getelementptr float, ptr %leaves, i64 %start.row
  %start.least = call float @leaf_distances(ptr %x.i, ptr %start.leaf, i64 %dim, ptr %scratch)
  %start.codes.row = shl i64 %start, 6
  %start.codes = getelementptr i64, ptr %codes, i64 %start.codes.row
  %start.code = call i64 @first_code(ptr %scratch, ptr %start.codes, float %start.least)
  br label %scan
scan:
  %first.best = phi float [ 0x7FF0000000000000, %vector ], [ %start.least, %bound ]
  %first.code = phi i64 [ 0, %vector ], [ %start.code, %bound ]
  br label %leaf
leaf:
  %l = phi i64 [ 0, %scan ], [ %l.next, %leaf.end ]
  %best = phi float [ %first.best, %scan ], [ %best.next, %leaf.end ]
  %code = phi i64 [ %first.code, %scan ], [ %code.next, %leaf.end ]
  br i1 %has.boxes, label %test, label %visit
test:
  %bound.at = getelementptr float, ptr %bounds, i64 %l
  %bound.l = load float, ptr %bound.at
  %near = fcmp ole float %bound.l, %best
  br i1 %near, label %visit, label %leaf.end
visit:
  %leaf.row = mul i64 %l, %leaf.size
  %leaf.l = getelementptr float, ptr %leaves, i64 %leaf.row
  %least = call float @leaf_distances(ptr %x.i, ptr %leaf.l, i64 %dim, ptr %scratch)
  %good = fcmp ole float %least, %best
  br i1 %good, label %take, label %leaf.end
take:
  %codes.row = shl i64 %l, 6
  %codes.l = getelementptr i64, ptr %codes, i64 %codes.row
  %candidate = call i64 @first_code(ptr %scratch, ptr %codes.l, float %least)
  %nearer = fcmp olt float %least, %best
  %lower = icmp slt i64 %candidate, %code
  %wins = or i1 %nearer, %lower
  %winner = select i1 %wins, i64 %candidate, i64 %code
  br label %leaf.end
leaf.end:
  %best.next = phi float [ %best, %test ], [ %best, %visit ], [ %least, %take ]
  %code.next = phi i64 [ %code, %test ], [ %code, %visit ], [ %winner, %take ]
  %l.next = add i64 %l, 1
  %l.more = icmp slt i64 %l.next, %count
  br i1 %l.more, label %leaf, label %vector.end
vector.end:
  %result.row = mul i64 %i, %result.step
  %result.at = getelementptr i64, ptr %result, i64 %result.row
  store i64 %code.next, ptr %result.at
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %n
  br i1 %i.more, label %vector, label %end
end:
  ret void
}

; What native.py hands over: seven pointers, twelve counts, and the number of the next share.
%Task = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr,
               i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64 }

; One thread's work, with room for its own bounds. It takes share after share of %share vectors
; until none is left, so that a thread whose core is busy elsewhere holds nobody up. Vectors go
; some at a time through all parts: their rows are still in the cache for the next part.
define void @search_share(ptr %task, i64 %thread) {
entry:
  %x.at = getelementptr %Task, ptr %task, i32 0, i32 0
  %x = load ptr, ptr %x.at
  %leaves.at = getelementptr %Task, ptr %task, i32 0, i32 1
  %leaves = load ptr, ptr %leaves.at
  %codes.at = getelementptr %Task, ptr %task, i32 0, i32 2
  %codes = load ptr, ptr %codes.at
  %lows.at = getelementptr %Task, ptr %task, i32 0, i32 3
  %lows = load ptr, ptr %lows.at
  %highs.at = getelementptr %Task, ptr %task, i32 0, i32 4
  %highs = load ptr, ptr %highs.at
  %bounds.at = getelementptr %Task, ptr %task, i32 0, i32 5
  %bounds = load ptr, ptr %bounds.at
  %result.at = getelementptr %Task, ptr %task, i32 0, i32 6
  %result = load ptr, ptr %result.at
  %n.at = getelementptr %Task, ptr %task, i32 0, i32 7
  %n = load i64, ptr %n.at
  %dim.at = getelementptr %Task, ptr %task, i32 0, i32 8
  %dim = load i64, ptr %dim.at
  %count.at = getelementptr %Task, ptr %task, i32 0, i32 9
  %count = load i64, ptr %count.at
  %padded.at = getelementptr %Task, ptr %task, i32 0, i32 10
  %padded = load i64, ptr %padded.at
  %boxed.at = getelementptr %Task, ptr %task, i32 0, i32 11
  %boxed = load i64, ptr %boxed.at
  %share.at = getelementptr %Task, ptr %task, i32 0, i32 12
  %share = load i64, ptr %share.at
  %parts.at = getelementptr %Task, ptr %task, i32 0, i32 13
  %parts = load i64, ptr %parts.at
  %x_step.at = getelementptr %Task, ptr %task, i32 0, i32 14
  %x_step = load i64, ptr %x_step.at
  %x_part.at = getelementptr %Task, ptr %task, i32 0, i32 15
  %x_part = load i64, ptr %x_part.at
  %result_step.at = getelementptr %Task, ptr %task, i32 0, i32 16
  %result_step = load i64, ptr %result_step.at
  %result_part.at = getelementptr %Task, ptr %task, i32 0, i32 17
  %result_part = load i64, ptr %result_part.at
  %leaves_part.at = getelementptr %Task, ptr %task, i32 0, i32 18
  %leaves_part = load i64, ptr %leaves_part.at
  %next.at = getelementptr %Task, ptr %task, i32 0, i32 19
  %bounds.row = mul i64 %thread, %padded
  %bounds.mine = getelementptr float, ptr %bounds, i64 %bounds.row
  br label %take
take:
  %taken = atomicrmw add ptr %next.at, i64 1 monotonic
  %start = mul i64 %taken, %share
  %full = add i64 %start, %share
  %short = icmp slt i64 %n, %full
  %stop = select i1 %short, i64 %n, i64 %full
  %any = icmp slt i64 %start, %stop
  br i1 %any, label %block, label %end
block:
  %row = phi i64 [ %start, %take ], [ %row.next, %block.end ]
  %row.next = add i64 %row, 32
  %last = icmp slt i64 %stop, %row.next
  %row.stop = select i1 %last, i64 %stop, i64 %row.next
  %rows = sub i64 %row.stop, %row
  %x.row = mul i64 %row, %x_step
  %x.block = getelementptr float, ptr %x, i64 %x.row
  %result.row = mul i64 %row, %result_step
  %result.block = getelementptr i64, ptr %result, i64 %result.row
  br label %part
part:
  %p = phi i64 [ 0, %block ], [ %p.next, %part ]
  %x.offset = mul i64 %p, %x_part
  %x.p = getelementptr float, ptr %x.block, i64 %x.offset
  %leaves.offset = mul i64 %p, %leaves_part
  %leaves.p = getelementptr float, ptr %leaves, i64 %leaves.offset
  %result.offset = mul i64 %p, %result_part
  %result.p = getelementptr i64, ptr %result.block, i64 %result.offset
  call void @search(ptr %x.p, ptr %leaves.p, ptr %codes, ptr %lows, ptr %highs,
                    ptr %bounds.mine, ptr %result.p, i64 %rows, i64 %dim, i64 %count,
                    i64 %padded, i64 %boxed, i64 %x_step, i64 %result_step)
  %p.next = add i64 %p, 1
  %p.more = icmp slt i64 %p.next, %parts
  br i1 %p.more, label %part, label %block.end
block.end:
  %more = icmp slt i64 %row.next, %stop
  br i1 %more, label %block, label %take
end:
  ret void
}

; The same, as a thread of the OpenMP team that runs it.
define void @search_in_team(ptr %task) {
  %number = call i32 @omp_get_thread_num()
  %thread = zext i32 %number to i64
  call void @search_share(ptr %task, i64 %thread)
  ret void
}

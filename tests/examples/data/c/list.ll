; ModuleID = 'list.c'
source_filename = "list.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.node = type { ptr, ptr, i32 }

@head = internal global ptr null, align 8

; Function Attrs: nounwind uwtable
define dso_local ptr @find(ptr noundef %0, i32 noundef %1) #0 !dbg !9 {
  %3 = alloca ptr, align 8
  %4 = alloca ptr, align 8
  %5 = alloca i32, align 4
  store ptr %0, ptr %4, align 8, !tbaa !12
  store i32 %1, ptr %5, align 4, !tbaa !16
  br label %6, !dbg !18

6:                                                ; preds = %17, %2
  %7 = load ptr, ptr %4, align 8, !dbg !19, !tbaa !12
  %8 = icmp ne ptr %7, null, !dbg !18
  br i1 %8, label %9, label %21, !dbg !18

9:                                                ; preds = %6
  %10 = load ptr, ptr %4, align 8, !dbg !20, !tbaa !12
  %11 = getelementptr inbounds %struct.node, ptr %10, i32 0, i32 2, !dbg !21
  %12 = load i32, ptr %11, align 8, !dbg !21, !tbaa !22
  %13 = load i32, ptr %5, align 4, !dbg !24, !tbaa !16
  %14 = icmp eq i32 %12, %13, !dbg !25
  br i1 %14, label %15, label %17, !dbg !20

15:                                               ; preds = %9
  %16 = load ptr, ptr %4, align 8, !dbg !26, !tbaa !12
  store ptr %16, ptr %3, align 8, !dbg !27
  br label %22, !dbg !27

17:                                               ; preds = %9
  %18 = load ptr, ptr %4, align 8, !dbg !28, !tbaa !12
  %19 = getelementptr inbounds %struct.node, ptr %18, i32 0, i32 0, !dbg !29
  %20 = load ptr, ptr %19, align 8, !dbg !29, !tbaa !30
  store ptr %20, ptr %4, align 8, !dbg !31, !tbaa !12
  br label %6, !dbg !18, !llvm.loop !32

21:                                               ; preds = %6
  store ptr null, ptr %3, align 8, !dbg !36
  br label %22, !dbg !36

22:                                               ; preds = %21, %15
  %23 = load ptr, ptr %3, align 8, !dbg !37
  ret ptr %23, !dbg !37
}

; Function Attrs: nounwind uwtable
define dso_local i32 @use(i32 noundef %0) #0 !dbg !38 {
  %2 = alloca i32, align 4
  %3 = alloca ptr, align 8
  store i32 %0, ptr %2, align 4, !tbaa !16
  call void @llvm.lifetime.start.p0(i64 8, ptr %3) #3, !dbg !39
  %4 = load ptr, ptr @head, align 8, !dbg !40, !tbaa !12
  %5 = load i32, ptr %2, align 4, !dbg !41, !tbaa !16
  %6 = call ptr @find(ptr noundef %4, i32 noundef %5), !dbg !42
  store ptr %6, ptr %3, align 8, !dbg !43, !tbaa !12
  %7 = load ptr, ptr %3, align 8, !dbg !44, !tbaa !12
  %8 = getelementptr inbounds %struct.node, ptr %7, i32 0, i32 2, !dbg !45
  %9 = load i32, ptr %8, align 8, !dbg !45, !tbaa !22
  call void @llvm.lifetime.end.p0(i64 8, ptr %3) #3, !dbg !46
  ret i32 %9, !dbg !47
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: nounwind uwtable
define dso_local i32 @checked(i32 noundef %0) #0 !dbg !48 {
  %2 = alloca i32, align 4
  %3 = alloca ptr, align 8
  store i32 %0, ptr %2, align 4, !tbaa !16
  call void @llvm.lifetime.start.p0(i64 8, ptr %3) #3, !dbg !49
  %4 = load ptr, ptr @head, align 8, !dbg !50, !tbaa !12
  %5 = load i32, ptr %2, align 4, !dbg !51, !tbaa !16
  %6 = call ptr @find(ptr noundef %4, i32 noundef %5), !dbg !52
  store ptr %6, ptr %3, align 8, !dbg !53, !tbaa !12
  %7 = load ptr, ptr %3, align 8, !dbg !54, !tbaa !12
  %8 = icmp ne ptr %7, null, !dbg !54
  br i1 %8, label %9, label %13, !dbg !54

9:                                                ; preds = %1
  %10 = load ptr, ptr %3, align 8, !dbg !55, !tbaa !12
  %11 = getelementptr inbounds %struct.node, ptr %10, i32 0, i32 2, !dbg !56
  %12 = load i32, ptr %11, align 8, !dbg !56, !tbaa !22
  br label %14, !dbg !54

13:                                               ; preds = %1
  br label %14, !dbg !54

14:                                               ; preds = %13, %9
  %15 = phi i32 [ %12, %9 ], [ 0, %13 ], !dbg !54
  call void @llvm.lifetime.end.p0(i64 8, ptr %3) #3, !dbg !57
  ret i32 %15, !dbg !58
}

; Function Attrs: nounwind uwtable
define dso_local i32 @through_memory(ptr noundef %0, ptr noundef %1, i32 noundef %2) #0 !dbg !59 {
  %4 = alloca ptr, align 8
  %5 = alloca ptr, align 8
  %6 = alloca i32, align 4
  %7 = alloca ptr, align 8
  store ptr %0, ptr %4, align 8, !tbaa !12
  store ptr %1, ptr %5, align 8, !tbaa !12
  store i32 %2, ptr %6, align 4, !tbaa !16
  call void @llvm.lifetime.start.p0(i64 8, ptr %7) #3, !dbg !60
  %8 = load i32, ptr %6, align 4, !dbg !61, !tbaa !16
  %9 = icmp ne i32 %8, 0, !dbg !61
  br i1 %9, label %10, label %12, !dbg !61

10:                                               ; preds = %3
  %11 = load ptr, ptr %4, align 8, !dbg !62, !tbaa !12
  br label %14, !dbg !61

12:                                               ; preds = %3
  %13 = load ptr, ptr %5, align 8, !dbg !63, !tbaa !12
  br label %14, !dbg !61

14:                                               ; preds = %12, %10
  %15 = phi ptr [ %11, %10 ], [ %13, %12 ], !dbg !61
  store ptr %15, ptr %7, align 8, !dbg !64, !tbaa !12
  %16 = load ptr, ptr %4, align 8, !dbg !65, !tbaa !12
  %17 = getelementptr inbounds %struct.node, ptr %16, i32 0, i32 1, !dbg !66
  store ptr null, ptr %17, align 8, !dbg !67, !tbaa !68
  %18 = load ptr, ptr %7, align 8, !dbg !69, !tbaa !12
  %19 = getelementptr inbounds %struct.node, ptr %18, i32 0, i32 1, !dbg !70
  %20 = load ptr, ptr %19, align 8, !dbg !70, !tbaa !68
  %21 = getelementptr inbounds %struct.node, ptr %20, i32 0, i32 2, !dbg !71
  %22 = load i32, ptr %21, align 8, !dbg !71, !tbaa !22
  call void @llvm.lifetime.end.p0(i64 8, ptr %7) #3, !dbg !72
  ret i32 %22, !dbg !73
}

; Function Attrs: nounwind uwtable
define dso_local void @begin() #0 !dbg !74 {
  %1 = call ptr @malloc(i64 noundef 24) #4, !dbg !75
  store ptr %1, ptr @head, align 8, !dbg !76, !tbaa !12
  %2 = call ptr @malloc(i64 noundef 24) #4, !dbg !77
  %3 = load ptr, ptr @head, align 8, !dbg !78, !tbaa !12
  %4 = getelementptr inbounds %struct.node, ptr %3, i32 0, i32 0, !dbg !79
  store ptr %2, ptr %4, align 8, !dbg !80, !tbaa !30
  ret void, !dbg !81
}

; Function Attrs: allocsize(0)
declare !dbg !82 ptr @malloc(i64 noundef) #2

attributes #0 = { nounwind uwtable "min-legal-vector-width"="0" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="x86-64" "target-features"="+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+x87" "tune-cpu"="generic" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { allocsize(0) "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="x86-64" "target-features"="+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+x87" "tune-cpu"="generic" }
attributes #3 = { nounwind }
attributes #4 = { allocsize(0) }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3, !4, !5, !6, !7}
!llvm.ident = !{!8}

!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, producer: "clang", isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly, splitDebugInlining: false, nameTableKind: None)
!1 = !DIFile(filename: "list.c", directory: ".", checksumkind: CSK_MD5, checksum: "4cb52ddb4dde4564cf64c612b8ea8f77")
!2 = !{i32 7, !"Dwarf Version", i32 5}
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !{i32 1, !"wchar_size", i32 4}
!5 = !{i32 8, !"PIC Level", i32 2}
!6 = !{i32 7, !"PIE Level", i32 2}
!7 = !{i32 7, !"uwtable", i32 2}
!8 = !{!"clang"}
!9 = distinct !DISubprogram(name: "find", scope: !1, file: !1, line: 12, type: !10, scopeLine: 12, flags: DIFlagPrototyped | DIFlagAllCallsDescribed, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!10 = !DISubroutineType(types: !11)
!11 = !{}
!12 = !{!13, !13, i64 0}
!13 = !{!"any pointer", !14, i64 0}
!14 = !{!"omnipotent char", !15, i64 0}
!15 = !{!"Simple C/C++ TBAA"}
!16 = !{!17, !17, i64 0}
!17 = !{!"int", !14, i64 0}
!18 = !DILocation(line: 13, column: 5, scope: !9)
!19 = !DILocation(line: 13, column: 12, scope: !9)
!20 = !DILocation(line: 14, column: 13, scope: !9)
!21 = !DILocation(line: 14, column: 19, scope: !9)
!22 = !{!23, !17, i64 16}
!23 = !{!"node", !13, i64 0, !13, i64 8, !17, i64 16}
!24 = !DILocation(line: 14, column: 28, scope: !9)
!25 = !DILocation(line: 14, column: 25, scope: !9)
!26 = !DILocation(line: 14, column: 42, scope: !9)
!27 = !DILocation(line: 14, column: 35, scope: !9)
!28 = !DILocation(line: 15, column: 16, scope: !9)
!29 = !DILocation(line: 15, column: 22, scope: !9)
!30 = !{!23, !13, i64 0}
!31 = !DILocation(line: 15, column: 14, scope: !9)
!32 = distinct !{!32, !18, !33, !34, !35}
!33 = !DILocation(line: 16, column: 5, scope: !9)
!34 = !{!"llvm.loop.mustprogress"}
!35 = !{!"llvm.loop.unroll.disable"}
!36 = !DILocation(line: 17, column: 5, scope: !9)
!37 = !DILocation(line: 18, column: 1, scope: !9)
!38 = distinct !DISubprogram(name: "use", scope: !1, file: !1, line: 20, type: !10, scopeLine: 20, flags: DIFlagPrototyped | DIFlagAllCallsDescribed, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!39 = !DILocation(line: 21, column: 5, scope: !38)
!40 = !DILocation(line: 21, column: 31, scope: !38)
!41 = !DILocation(line: 21, column: 37, scope: !38)
!42 = !DILocation(line: 21, column: 26, scope: !38)
!43 = !DILocation(line: 21, column: 18, scope: !38)
!44 = !DILocation(line: 22, column: 12, scope: !38)
!45 = !DILocation(line: 22, column: 19, scope: !38)
!46 = !DILocation(line: 23, column: 1, scope: !38)
!47 = !DILocation(line: 22, column: 5, scope: !38)
!48 = distinct !DISubprogram(name: "checked", scope: !1, file: !1, line: 25, type: !10, scopeLine: 25, flags: DIFlagPrototyped | DIFlagAllCallsDescribed, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!49 = !DILocation(line: 26, column: 5, scope: !48)
!50 = !DILocation(line: 26, column: 31, scope: !48)
!51 = !DILocation(line: 26, column: 37, scope: !48)
!52 = !DILocation(line: 26, column: 26, scope: !48)
!53 = !DILocation(line: 26, column: 18, scope: !48)
!54 = !DILocation(line: 27, column: 12, scope: !48)
!55 = !DILocation(line: 27, column: 20, scope: !48)
!56 = !DILocation(line: 27, column: 27, scope: !48)
!57 = !DILocation(line: 28, column: 1, scope: !48)
!58 = !DILocation(line: 27, column: 5, scope: !48)
!59 = distinct !DISubprogram(name: "through_memory", scope: !1, file: !1, line: 30, type: !10, scopeLine: 30, flags: DIFlagPrototyped | DIFlagAllCallsDescribed, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!60 = !DILocation(line: 31, column: 5, scope: !59)
!61 = !DILocation(line: 31, column: 25, scope: !59)
!62 = !DILocation(line: 31, column: 33, scope: !59)
!63 = !DILocation(line: 31, column: 39, scope: !59)
!64 = !DILocation(line: 31, column: 18, scope: !59)
!65 = !DILocation(line: 32, column: 5, scope: !59)
!66 = !DILocation(line: 32, column: 10, scope: !59)
!67 = !DILocation(line: 32, column: 16, scope: !59)
!68 = !{!23, !13, i64 8}
!69 = !DILocation(line: 33, column: 12, scope: !59)
!70 = !DILocation(line: 33, column: 18, scope: !59)
!71 = !DILocation(line: 33, column: 25, scope: !59)
!72 = !DILocation(line: 34, column: 1, scope: !59)
!73 = !DILocation(line: 33, column: 5, scope: !59)
!74 = distinct !DISubprogram(name: "begin", scope: !1, file: !1, line: 36, type: !10, scopeLine: 36, flags: DIFlagPrototyped | DIFlagAllCallsDescribed, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!75 = !DILocation(line: 37, column: 12, scope: !74)
!76 = !DILocation(line: 37, column: 10, scope: !74)
!77 = !DILocation(line: 38, column: 18, scope: !74)
!78 = !DILocation(line: 38, column: 5, scope: !74)
!79 = !DILocation(line: 38, column: 11, scope: !74)
!80 = !DILocation(line: 38, column: 16, scope: !74)
!81 = !DILocation(line: 39, column: 1, scope: !74)
!82 = !DISubprogram(name: "malloc", scope: !1, file: !1, line: 2, type: !10, flags: DIFlagPrototyped, spFlags: DISPFlagOptimized)

partita_test(unit build_captured_test model)
partita_test(unit build_model_test model)

find_package(benchmark QUIET)
if(benchmark_FOUND)
  add_executable(bench_build_models EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/build_models.cc)
  target_link_libraries(bench_build_models PRIVATE benchmark::benchmark partita_model)
endif()

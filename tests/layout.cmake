partita_test(unit rows_table_test model)
partita_test(unit layout_unpack_test layout)
if(PARTITA_TORCH)
  partita_test(property rows_truth_test torch)
  foreach(part sample samples function_samples line_samples image_samples truth mutants apart)
    target_sources(test_property_rows_truth_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/property/rows_${part}.cc)
  endforeach()
  target_include_directories(test_property_rows_truth_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/property)
  set_property(TEST property/rows_truth_test PROPERTY ENVIRONMENT "GTEST_FILTER=-*Caught*")
  foreach(half 0 1)
    add_test(NAME property/rows_mutants_test_${half} COMMAND test_property_rows_truth_test)
    set_tests_properties(property/rows_mutants_test_${half} PROPERTIES
      LABELS property ENVIRONMENT "GTEST_FILTER=*AreCaught/${half}")
  endforeach()
  add_test(NAME parity/rows_flops_test
           COMMAND ${PROJECT_SOURCE_DIR}/.venv/bin/python ${CMAKE_CURRENT_SOURCE_DIR}/parity/rows_flops_test.py
                   $<TARGET_FILE:partita> ${PROJECT_SOURCE_DIR})
  set_tests_properties(parity/rows_flops_test PROPERTIES LABELS parity)
endif()

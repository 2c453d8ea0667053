partita_test(unit rows_table_test model)
partita_test(unit layout_unpack_test layout)
if(PARTITA_TORCH)
  partita_test(property rows_truth_test torch)
  foreach(part sample samples truth mutants)
    target_sources(test_property_rows_truth_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/property/rows_${part}.cc)
  endforeach()
  target_include_directories(test_property_rows_truth_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/property)
  # The mutants of every row take minutes: run the program without a filter, or with PARTITA_CAMPAIGN=1 for all.
  set_property(TEST property/rows_truth_test PROPERTY ENVIRONMENT "GTEST_FILTER=-*Caught")
  add_test(NAME parity/rows_flops_test
           COMMAND ${PROJECT_SOURCE_DIR}/.venv/bin/python ${CMAKE_CURRENT_SOURCE_DIR}/parity/rows_flops_test.py
                   $<TARGET_FILE:partita> ${PROJECT_SOURCE_DIR})
  set_tests_properties(parity/rows_flops_test PROPERTIES LABELS parity)
endif()

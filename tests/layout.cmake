partita_test(unit rows_table_test model)
if(PARTITA_TORCH)
  add_test(NAME parity/rows_flops_test
           COMMAND ${PROJECT_SOURCE_DIR}/.venv/bin/python ${CMAKE_CURRENT_SOURCE_DIR}/parity/rows_flops_test.py
                   $<TARGET_FILE:partita> ${PROJECT_SOURCE_DIR})
  set_tests_properties(parity/rows_flops_test PROPERTIES LABELS parity)
endif()

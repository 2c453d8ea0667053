partita_script(unit papers_table ${PROJECT_SOURCE_DIR}/examples/papers/table.py $<TARGET_FILE:partita> osdp)
partita_script(unit cli_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/cli_test.py $<TARGET_FILE:partita>)
partita_script(unit files_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/files_test.py $<TARGET_FILE:partita>)
partita_script(unit interrupt_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/interrupt_test.py $<TARGET_FILE:partita>)
partita_script(unit progress_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/progress_test.py $<TARGET_FILE:partita>)
partita_script(unit answers_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/answers_test.py $<TARGET_FILE:partita>)
partita_script(unit recipes_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/recipes_test.py $<TARGET_FILE:partita>)
partita_script(unit devices_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/devices_test.py $<TARGET_FILE:partita>)
partita_script(golden cases ${CMAKE_CURRENT_SOURCE_DIR}/cases.py $<TARGET_FILE:partita> ${CMAKE_CURRENT_SOURCE_DIR}/golden)
partita_script(errors cases ${CMAKE_CURRENT_SOURCE_DIR}/cases.py $<TARGET_FILE:partita> ${CMAKE_CURRENT_SOURCE_DIR}/errors)
partita_script(unit docs_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/docs_test.py $<TARGET_FILE:partita>
               $<$<BOOL:${PARTITA_TORCH}>:--torch>)
partita_script(unit install_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/install_test.py ${PROJECT_BINARY_DIR}
               -DCMAKE_CXX_FLAGS=${PARTITA_SANITIZE_FLAG})

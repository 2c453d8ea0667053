partita_script(unit cli_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/cli_test.py $<TARGET_FILE:partita>)
partita_script(golden cases ${CMAKE_CURRENT_SOURCE_DIR}/cases.py $<TARGET_FILE:partita> ${CMAKE_CURRENT_SOURCE_DIR}/golden)
partita_script(errors cases ${CMAKE_CURRENT_SOURCE_DIR}/cases.py $<TARGET_FILE:partita> ${CMAKE_CURRENT_SOURCE_DIR}/errors)

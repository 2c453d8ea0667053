partita_test(unit lower_test lower program)
if(PARTITA_TORCH)
  partita_script(parity verify_table ${CMAKE_CURRENT_SOURCE_DIR}/parity/verify_table.py $<TARGET_FILE:partita>)
endif()

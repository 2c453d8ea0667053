partita_test(unit plan_stages_test plan)
partita_test(unit lower_test lower program)
if(PARTITA_TORCH)
  partita_script(parity verify_table ${CMAKE_CURRENT_SOURCE_DIR}/parity/verify_table.py $<TARGET_FILE:partita>)
  partita_script(parity schedule_table ${CMAKE_CURRENT_SOURCE_DIR}/parity/schedule_table.py $<TARGET_FILE:partita> --share 5/16)
endif()

# Random models under random plans: a command.
if(PARTITA_TORCH)
  partita_campaign(plan_campaign SOURCES plan_campaign.cc LAYERS lower program torch)
endif()

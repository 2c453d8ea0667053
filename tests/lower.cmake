partita_test(unit plan_stages_test plan)
partita_test(unit lower_test prove)
partita_test(unit lower_recipes_test prove)
partita_test(unit lower_overlap_test prove)
partita_test(unit lower_unmade_test prove)
partita_test(unit lower_checks_test prove)
partita_test(unit optimizer_groups_test prove)
if(PARTITA_TORCH)
  partita_script(parity verify_table ${CMAKE_CURRENT_SOURCE_DIR}/parity/verify_table.py $<TARGET_FILE:partita>)
  partita_script(parity schedule_table ${CMAKE_CURRENT_SOURCE_DIR}/parity/schedule_table.py $<TARGET_FILE:partita> --share 5/16)
endif()

# Random models under random plans: a command, and a share of it a test.
if(PARTITA_TORCH)
  partita_campaign(plan_campaign SOURCES plan_campaign.cc plan_draws.cc plan_trial.cc LAYERS prove torch)
  partita_campaign(plan_table SOURCES plan_table.cc plan_trial.cc LAYERS prove torch)
  partita_script(parity recipe_table ${CMAKE_CURRENT_SOURCE_DIR}/parity/recipe_table.py ${PROJECT_BINARY_DIR} --share 0/281)
  add_test(NAME property/plan_campaign
           COMMAND plan_campaign 300 1 0 ${CMAKE_CURRENT_SOURCE_DIR}/data/convnet-tiny.model.json)
  set_tests_properties(property/plan_campaign PROPERTIES LABELS property)
endif()

# Every pass checked under random plans: a command, and a share of it a test.
partita_campaign(lower_campaign SOURCES lower_campaign.cc plan_draws.cc LAYERS prove run)
add_test(NAME property/lower_passes COMMAND lower_campaign 60)
set_tests_properties(property/lower_passes PROPERTIES LABELS property)

# The campaigns are a command; a share is a test.
partita_campaign(strategy_campaign SOURCES strategy_campaign.cc LAYERS choose base)
add_test(NAME property/strategy_random COMMAND strategy_campaign random 1500)
set_tests_properties(property/strategy_random PROPERTIES LABELS property)
add_test(NAME perf/strategy_speed COMMAND strategy_campaign speed)
set_tests_properties(perf/strategy_speed PROPERTIES LABELS perf RUN_SERIAL TRUE)
partita_script(property strategy_mps ${CMAKE_CURRENT_SOURCE_DIR}/property/strategy_mps.py $<TARGET_FILE:strategy_campaign>)

partita_campaign(mesh_campaign SOURCES mesh_campaign.cc LAYERS search)
foreach(share "table;11" "random;gpt2-tiny;2x2;4" "random;llama-tiny;2;3")
  string(REPLACE ";" "_" name "${share}")
  add_test(NAME property/mesh_${name} COMMAND mesh_campaign ${share})
  set_tests_properties(property/mesh_${name} PROPERTIES LABELS property)
endforeach()
partita_campaign(planner_campaign SOURCES planner_campaign.cc rival_plans.cc small_models.cc
                 LAYERS run search)
partita_test(unit search_plan_test search simulate lower)
partita_test(unit search_interrupt_test search base)
partita_test(unit search_faults_test search lower model base)

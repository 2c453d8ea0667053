# The campaigns are a command; a share is a test.
add_executable(strategy_campaign ${PROJECT_SOURCE_DIR}/bench/strategy_campaign.cc)
set_target_properties(strategy_campaign PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
target_link_libraries(strategy_campaign PRIVATE partita_strategy partita_base)
add_test(NAME property/strategy_random COMMAND strategy_campaign random 1500)
set_tests_properties(property/strategy_random PROPERTIES LABELS property)
add_test(NAME perf/strategy_speed COMMAND strategy_campaign speed)
set_tests_properties(perf/strategy_speed PROPERTIES LABELS perf RUN_SERIAL TRUE)
partita_script(property strategy_mps ${CMAKE_CURRENT_SOURCE_DIR}/property/strategy_mps.py $<TARGET_FILE:strategy_campaign>)

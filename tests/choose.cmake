# The campaigns are a command; a share is a test.
partita_campaign(choose_campaign SOURCES choose_campaign.cc choose_problems.cc LAYERS choose base)
add_test(NAME property/choose_random COMMAND choose_campaign random 1000)
set_tests_properties(property/choose_random PROPERTIES LABELS property)
add_test(NAME perf/choose_speed COMMAND choose_campaign speed)
set_tests_properties(perf/choose_speed PROPERTIES LABELS perf RUN_SERIAL TRUE)
partita_script(unit choose_cases_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/choose_cases_test.py $<TARGET_FILE:partita>)

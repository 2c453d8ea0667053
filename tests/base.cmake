find_package(Python3 REQUIRED COMPONENTS Interpreter)

partita_test(unit base_test base)
partita_test(unit base_file_test base)

# partita_script(<label> <name> <command...>): a test that is a Python program of the standard library only.
function(partita_script label name)
  add_test(NAME ${label}/${name} COMMAND Python3::Interpreter ${ARGN})
  set_tests_properties(${label}/${name} PROPERTIES LABELS ${label})
endfunction()

partita_script(unit layers_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/layers_test.py ${PROJECT_SOURCE_DIR})
partita_script(unit walks_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/walks_test.py ${PROJECT_SOURCE_DIR})
partita_script(unit writers_test ${CMAKE_CURRENT_SOURCE_DIR}/unit/writers_test.py ${PROJECT_SOURCE_DIR})

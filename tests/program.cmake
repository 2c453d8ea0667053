partita_test(unit program_certificate_test certify)
partita_test(unit program_rules_test certify)
partita_test(unit program_sentences_test certify)
partita_test(unit program_net_rules_test prove)
partita_test(unit program_holes_test prove)
partita_test(unit program_holes2_test prove)
partita_test(unit program_effects_test program)
partita_test(unit program_json_test certify)
partita_test(unit program_fold_file_test prove)
partita_test(unit program_walk_test certify)
partita_test(unit program_addend_test certify)
partita_test(unit program_memory_test program)
partita_test(unit program_simulate_test simulate)
partita_test(property program_certificate_test prove)
partita_test(property program_faults_test prove)
if(PARTITA_TORCH)
  partita_test(property program_soundness_test torch prove)
endif()

# Broken programs against the certificate: a command, and a share of it a test.
partita_campaign(program_campaign SOURCES program_campaign.cc program_mutations.cc LAYERS prove run)
target_include_directories(program_campaign PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/property)
if(PARTITA_TORCH)
  target_link_libraries(program_campaign PRIVATE partita_torch)
  target_compile_definitions(program_campaign PRIVATE PARTITA_CAN_RUN)
endif()
add_test(NAME property/program_mutations COMMAND program_campaign 5)

# Broken program files, of ranks and of classes: the same.
set(fuzz_sources fuzz_subjects.cc fuzz_classes.cc fuzz_tree.cc fuzz_boxes.cc fuzz_calls.cc fuzz_loads.cc fuzz_results.cc
                 fuzz_actions.cc fuzz_instructions.cc fuzz_groups.cc fuzz_storage.cc fuzz_added.cc fuzz_numbers.cc
                 fuzz_holes.cc fuzz_folds.cc)
partita_campaign(program_fuzz SOURCES program_fuzz.cc fuzz_judge.cc ${fuzz_sources} LAYERS prove run)
if(PARTITA_TORCH)
  target_link_libraries(program_fuzz PRIVATE partita_torch)
  target_compile_definitions(program_fuzz PRIVATE PARTITA_CAN_RUN)
endif()
add_test(NAME property/program_fuzz
         COMMAND program_fuzz 400 1 --model ${CMAKE_CURRENT_SOURCE_DIR}/data/convnet-tiny.model.json
                                    --model ${CMAKE_CURRENT_SOURCE_DIR}/data/odd-tiny.model.json)
set_tests_properties(property/program_fuzz PROPERTIES LABELS property)

partita_campaign(fold_campaign SOURCES fold_campaign.cc program_mutations.cc LAYERS prove)
target_include_directories(fold_campaign PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/property)
add_test(NAME property/program_fold COMMAND fold_campaign 200)
set_tests_properties(property/program_mutations PROPERTIES LABELS property)

# The certificate's kernel against its memory, on the same mutants and on random plans.
partita_campaign(certify_twice SOURCES certify_twice.cc program_mutations.cc plan_draws.cc ${fuzz_sources} LAYERS prove run)
target_include_directories(certify_twice PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/property)
add_test(NAME property/program_certify_twice COMMAND certify_twice 300 30)
set_tests_properties(property/program_certify_twice PROPERTIES LABELS property)

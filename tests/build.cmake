partita_test(unit build_captured_test model)

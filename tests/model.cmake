partita_test(unit model_test model)
partita_test(unit model_json_test model)
partita_test(unit model_check_test model)

partita_test(unit lower_test lower program)

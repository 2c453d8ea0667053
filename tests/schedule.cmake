partita_test(unit schedule_rows_test schedule base)
partita_test(unit schedule_cases_test schedule base)

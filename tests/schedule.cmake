partita_test(unit schedule_rows_test schedule base)

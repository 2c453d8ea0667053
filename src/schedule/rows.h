#pragma once

#include "schedule/schedule.h"

namespace partita {

// One function a schedule; its picture is above the definition. They trust params: make_schedule checked them.
Schedule gpipe(const ScheduleParams& params);
Schedule one_f_one_b(const ScheduleParams& params);
Schedule eager_one_f_one_b(const ScheduleParams& params);

}  // namespace partita

#include "cli/lab_schedule.h"

namespace partita {
void compare_schedules(const ScheduleRequest&, const Command&) {}
}  // namespace partita

#pragma once

#include "schedule/schedule.h"

namespace partita::schedule {

// One function a schedule; its picture is above the definition. They trust params: make_schedule checked
// them.
Schedule gpipe(const ScheduleParams& params);
Schedule one_f_one_b(const ScheduleParams& params);
Schedule eager_one_f_one_b(const ScheduleParams& params);
Schedule zb_h1(const ScheduleParams& params);
Schedule zb_h2(const ScheduleParams& params);
Schedule zb_v(const ScheduleParams& params);
Schedule interleaved(const ScheduleParams& params);
Schedule looped_bfs(const ScheduleParams& params);
Schedule interleaved_zb(const ScheduleParams& params);
Schedule v_half(const ScheduleParams& params);
Schedule v_min(const ScheduleParams& params);
Schedule dualpipe(const ScheduleParams& params);
Schedule dualpipev(const ScheduleParams& params);
Schedule wave(const ScheduleParams& params);
Schedule chimera(const ScheduleParams& params);
Schedule bitpipe(const ScheduleParams& params);
Schedule three_f_one_b(const ScheduleParams& params);
Schedule interlaced(const ScheduleParams& params);

}  // namespace partita::schedule

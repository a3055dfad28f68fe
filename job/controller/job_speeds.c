/* Which of a manager's figures are a speed. */
#include "job/controller/job_speeds.h"

#include <string.h>

#include "base/text.h"

#define BATCHES_MIN 10  /* the first ones are slow */
#define LOOK_WEIGHT 4.0 /* of all ranks together */

static const char *program_of(const struct job_report *report, const char *group)
{
        for (size_t i = 0; i < report->program_count; i++)
                if (strcmp(report->programs[i].group, group) == 0 &&
                    sha256_is_hex(report->programs[i].sha256))
                        return report->programs[i].sha256;
        return "";
}

/* The name that what it says is kept under; "" = none: it is of another program than the one that is vouched
 * for. */
static const char *name_of(const struct ledger_speeds_programs *programs, const struct job_report *report,
                           const struct job_group *group)
{
        const char *vouched = ledger_speeds_vouched(programs, group->runtime);

        return vouched[0] != '\0' && strcmp(vouched, program_of(report, group->name)) != 0
                       ? ""
                       : ledger_speeds_program(programs, group->runtime);
}

static bool read_rank(const struct ledger_speeds_programs *programs, const struct job_state *state,
                      const struct job_report *report, const struct job_report_rank *rank,
                      struct job_speed *ret)
{
        const struct job_group *group = job_state_group(state, rank->group);
        double batch = (double) rank->batch, speed = rank->samples_per_s;

        if (group == NULL || group->server || group->model[0] == '\0' || group->chips == 0 || !(batch >= 1) ||
            !((double) rank->samples >= BATCHES_MIN * batch) || !(speed > 0))
                return false;
        (void) text_copy(ret->program, sizeof(ret->program), name_of(programs, report, group));
        if (ret->program[0] == '\0')
                return false;
        speed_table_device(ret->device, group->model, (group->ranks + group->chips - 1) / group->chips);
        ret->batch = batch;
        ret->step_ms = batch * 1000 / speed;
        return true;
}

size_t job_speeds_read(const struct ledger_speeds_programs *programs, const struct job_state *state,
                       const struct job_report *report, struct job_speed *ret, size_t max)
{
        size_t count = 0;

        if (programs->job->strategy == JOB_STRATEGY_SPLIT)
                return 0;
        for (size_t i = 0; i < report->rank_count && count < max; i++)
                count += read_rank(programs, state, report, &report->ranks[i], &ret[count]);
        for (size_t i = 0; i < count; i++)
                ret[i].weight = LOOK_WEIGHT / (double) count;
        return count;
}

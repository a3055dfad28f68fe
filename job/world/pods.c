/* Each pod by itself, then the manager, then what follows for the job: the first that is wrong speaks for
 * all, but the manager's own word comes before. */
#include "job/world/pods.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "job/world/hint.h"
#include "job/world/restarts.h"
#include "job/world/verdict.h"

static void blame(struct pods_verdict *v, const char *reason, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void blame(struct pods_verdict *v, const char *reason, const char *fmt, ...)
{
        va_list values;

        if (v->reason[0] != '\0')
                return;
        (void) text_copy(v->reason, sizeof(v->reason), reason);
        va_start(values, fmt);
        (void) vsnprintf(v->message, sizeof(v->message), fmt, values); /* cut to its field */
        va_end(values);
}

static bool has_ended(const struct pods_pod *pod)
{
        return pod->there && (pod->phase == PODS_SUCCEEDED || pod->phase == PODS_FAILED);
}

/* Of what a container wrote, or of the end of its log. */
struct line {
        char text[240];
};

static struct line last_line(const char *words)
{
        const char *begin;
        size_t length = hint_words(words, &begin);
        struct line line;

        (void) text_format(line.text, sizeof(line.text), "%.*s", (int) length, begin);
        return line;
}

/* Return: does the group need other chips, or a new pod? */
static bool judge_group(const struct pods_look *look, const struct pods_pod *pod, struct pods_verdict *v)
{
        bool evicted = look->yielding && (!pod->there || has_ended(pod) || pod->node_lost);

        if (pod->there && pod->leaving && !pod->node_lost) /* a checkpoint may be written in its grace time */
                return false;
        if (pod->node_lost)
                blame(v, evicted ? "Evicted" : "NodeLost", "node %s of %s is lost", pod->node, pod->group);
        else if (!pod->there && pod->ran)
                blame(v, evicted ? "Evicted" : "PodGone", "the pod of %s is gone", pod->group);
        else if (!has_ended(pod) && pod->there && pod->chip_lost)
                blame(v, "DeviceUnhealthy", "%s%s of %s on %s cannot be used any more",
                      pod->device[0] == '\0' ? "a chip" : "chip ", pod->device, pod->group, pod->node);
        else if (pod->there && pod->phase == PODS_FAILED)
                blame(v, evicted ? "Evicted" : "GroupFailed",
                      "pod %.70s ended with exit code %d (%.30s) %.240s", pod->name, pod->exit_code,
                      pod->reason, last_line(pod->words).text);
        else if (pod->there && pod->phase == PODS_SUCCEEDED && !look->runs)
                blame(v, evicted ? "Evicted" : "GroupEnded", "pod %.100s has ended, and the job has not",
                      pod->name);
        else
                return false;
        if (evicted)
                v->kind = PODS_GIVE_WAY;
        return true;
}

/* Did the manager end for want of restarts, of which there are some? */
static bool was_told_less(const struct pods_look *look)
{
        size_t length = strlen(look->state_message), end = strlen(RESTARTS_NO_MORE);

        return length > end && strcmp(look->state_message + length - end, RESTARTS_NO_MORE) == 0 &&
               look->state_reason[0] != '\0' &&
               restarts_of(look->restarts, look->restart_max) == RESTARTS_LEFT;
}

/* It tells how the job ended; if it could not, the next world has another one. Return: is that the end? */
static bool judge_manager(const struct pods_look *look, struct pods_verdict *v)
{
        const struct pods_pod *pod = &look->manager;
        bool final = true;

        if (!pod->there) {
                v->world = pod->ran;
                if (pod->ran)
                        blame(v, "ManagerGone", "the manager's pod %s is gone", pod->name);
                return false;
        }
        if (pod->phase == PODS_SUCCEEDED)
                return false;
        if (pod->phase != PODS_FAILED) {
                v->world = pod->node_lost;
                if (pod->node_lost)
                        blame(v, "NodeLost", "node %s of the manager is lost", pod->node);
                return false;
        }
        v->reason[0] = '\0';
        if (strcmp(look->state, "Failed") == 0 && was_told_less(look)) {
                final = false; /* spec.restart.max was raised, and it had not heard of it */
                v->world = true;
                blame(v, look->state_reason, "%.*s",
                      (int) (strlen(look->state_message) - strlen(RESTARTS_NO_MORE)), look->state_message);
        } else if (strcmp(look->state, "Failed") == 0) {
                blame(v, look->state_reason[0] != '\0' ? look->state_reason : "Failed", "%.390s",
                      look->state_message[0] != '\0' ? look->state_message : "its log says why");
        } else {
                final = verdict_is_final(pod->exit_code);
                v->world = !final;
                blame(v, final ? "RankFailed" : "ManagerFailed",
                      "the manager's pod %.70s ended with exit code %d (%.30s) %.220s", pod->name,
                      pod->exit_code, pod->reason, last_line(pod->words).text);
        }
        return final;
}

struct pods_verdict pods_judge(const struct pods_look *look, bool *ret_lost)
{
        struct pods_verdict v = { .kind = PODS_GO_ON };
        enum restarts restarts = restarts_of(look->restarts, look->restart_max);
        bool final, counts;

        for (size_t i = 0; i < look->group_count; i++)
                ret_lost[i] = judge_group(look, &look->groups[i], &v);
        final = judge_manager(look, &v);
        if (v.reason[0] == '\0' || v.kind == PODS_GIVE_WAY)
                return v;
        counts = v.world || look->runs;
        v.kind = final || (counts && restarts != RESTARTS_LEFT) ? PODS_END : PODS_RESTART;
        v.no_more_left = !final && counts && restarts == RESTARTS_USED_UP;
        return v;
}

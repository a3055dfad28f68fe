/* Who holds a job, and the one thing that lets it go on: a row for each word that a status may have. */
#include "scheduler-extender/explain/explain_held.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/spec/held.h"
#include "job/spec/job.h"
#include "job/spec/labels.h"
#include "scheduler-extender/explain/whatif.h"

/* What helps where its queue holds it (docs/how-to/kueue.md, "When a job does not start"). */
/* clang-format off */
static const struct help {
        const char *reason, *who, *action, *effect, *message;
} helps[] = {
        { HELD_WAITS,         "others", "admit",            "when its queue admits it",      "let its queue admit it: more quota, or the end of others there" },
        { HELD_INACTIVE,      "asker",  "activate",         "when its queue admits it",      "set spec.active of its Workload to true" },
        { HELD_KUEUE_MISSING, "others", "install-kueue",    "when its queue admits it",      "install Kueue and let remuda-controller read its Workloads, or take the label " LABELS_QUEUE " away" },
        { HELD_REFUSED,       "asker",  "change-job",       "when its queue admits it",      "change what the sentence names: its queue, its priority class, or an entry" },
        { HELD_UNUSABLE,      "others", "mend-admission",   "when its queue admits it anew", "mend what the sentence names: a flavor of its queue, or its minChips" },
        { HELD_EVICTED,       "nobody", "wait",             "when its queue admits it anew", "wait: it stands in its queue again in a moment" },
        { HELD_FINISHED,      "asker",  "delete-workload",  "when its queue admits it anew", "delete its Workload: another one waits anew" },
};
/* clang-format on */

static const struct help *find_help(const char *reason)
{
        for (size_t i = 0; i < ARRAY_SIZE(helps); i++)
                if (strcmp(helps[i].reason, reason) == 0)
                        return &helps[i];
        return NULL;
}

/* By who is no field of the job: a queue, or the last moments of a suspension that was taken back. A status
 * that says "Suspended" of a job whose spec does not is one that nobody has looked at since. */
static bool is_held_by_status(const struct ledger_job *job)
{
        const struct ledger_job_words *words = job->words;

        if (words == NULL)
                return false;
        return strcmp(words->reason, HELD_LEAVING) == 0 ||
               (strcmp(words->phase, "Suspended") == 0 && strcmp(words->reason, HELD_SUSPENDED) != 0 &&
                words->reason[0] != '\0');
}

bool explain_held_is(const struct ledger_job *job)
{
        return job->training != NULL && (job->training->suspend || is_held_by_status(job));
}

/* What it would find if nothing held it. */
struct trial {
        bool fits;
        char when[40], message[600]; /* "" = not known */
        json_t *missing;             /* owned; NULL = nothing is */
};

static int try_it(struct cluster *cluster, const struct ledger_job *job, uint64_t now_usec, struct trial *ret,
                  struct err *err)
{
        char namespace_[256];
        const char *name = store_key_split(job->key, namespace_), *when, *message;
        json_t *answer = NULL, *first;
        int r = whatif_job(cluster, namespace_, name, now_usec, &answer, err);

        *ret = (struct trial){ .fits = false };
        if (r < 0)
                return r;
        first = json_array_get(json_object_get(answer, "placements"), 0);
        when = json_string_value(json_object_get(first, "when"));
        message = json_string_value(json_object_get(first, "message"));
        ret->fits = json_integer_value(json_object_get(answer, "waiting")) == 0;
        (void) text_copy(ret->when, sizeof(ret->when), when == NULL ? "when it has chips" : when);
        (void) text_copy(ret->message, sizeof(ret->message), message == NULL ? "" : message);
        text_harmless(ret->message, 0); /* it may be cut within a letter */
        ret->missing = ret->fits ? NULL : json_incref(json_object_get(first, "missing"));
        json_decref(answer);
        return 0;
}

/* @untried: whose word it is, where no ledger can try it; NULL = it was tried */
static void add_remedy(json_t *remedies, const struct help *help, const char *effect, const char *untried,
                       const char *message)
{
        json_t *remedy = json_pack("{s:s, s:s, s:s, s:{}, s:s}", "who", help->who, "action", help->action,
                                   "takesEffect", effect, "detail", "message", message);

        if (untried != NULL)
                (void) json_object_set_new(remedy, "untried", json_string(untried));
        (void) json_array_append_new(remedies, remedy);
}

/* Told to wait by its author; where it names a queue, that is asked next. */
static void remedy_suspended(const struct ledger_job *job, const struct trial *trial, json_t *remedies)
{
        static const struct help resume = { .who = "asker", .action = "resume" };
        const char *queue = job->words == NULL ? "" : job->words->queue;
        CLEANUP(text_free) struct text message = { 0 }, effect = { 0 };
        char namespace_[256];
        const char *name = store_key_split(job->key, namespace_);

        text_printf(&message,
                    "set spec.suspend to false: kubectl -n %s patch trainingjob %s --type=merge "
                    "-p '{\"spec\":{\"suspend\":false}}'",
                    namespace_, name);
        text_append(&effect, trial->when);
        if (queue[0] != '\0') {
                text_reset(&effect);
                text_printf(&effect, "when queue '%s' admits it", queue);
        }
        if (!message.failed && !effect.failed)
                add_remedy(remedies, &resume, effect.data,
                           queue[0] == '\0' ? NULL : "its queue decides, where the controller reads queues",
                           message.data);
}

static void remedy_queue(const struct ledger_job *job, json_t *remedies)
{
        const struct help *help = find_help(job->words->reason);
        CLEANUP(text_free) struct text message = { 0 };
        char namespace_[256];

        (void) store_key_split(job->key, namespace_);
        if (help == NULL)
                return;
        text_printf(&message, "%s (kubectl -n %s describe workloads.kueue.x-k8s.io)", help->message,
                    namespace_);
        if (!message.failed)
                add_remedy(remedies, help, help->effect, "its queue decides", message.data);
}

static void say(const struct ledger_job *job, const struct trial *trial, struct text *summary)
{
        bool has_some = summary->size_bytes > 0; /* pods or a plan, which were told of */

        text_append(summary, has_some ? "; " : "");
        if (job->training->suspend)
                text_printf(summary, "it is suspended by spec.suspend: %s until that is false",
                            has_some ? "it gives up its chips and has none" : "it has no pods and no chips");
        else
                text_printf(summary, "it is held, %s: %s", job->words->reason, job->words->message);
        if (trial->fits)
                text_append(summary, "; one like it fits now");
        else if (trial->message[0] != '\0')
                text_printf(summary, "; after that it waits for chips: %s", trial->message);
}

int explain_held(struct cluster *cluster, const struct ledger_job *job, uint64_t now_usec, json_t *reply,
                 struct text *summary, struct err *err)
{
        struct trial trial;
        json_t *remedies = json_array(), *missing;
        size_t i;
        int r = try_it(cluster, job, now_usec, &trial, err);

        if (r < 0) {
                json_decref(remedies);
                return r;
        }
        say(job, &trial, summary);
        if (job->training->suspend)
                remedy_suspended(job, &trial, remedies);
        else
                remedy_queue(job, remedies);
        json_array_foreach(trial.missing, i, missing)
        {
                (void) json_array_append(remedies, missing);
        }
        (void) json_object_set_new(reply, "verdict", json_string("waits"));
        (void) json_object_set_new(reply, "remedies", remedies);
        json_decref(trial.missing);
        return 0;
}

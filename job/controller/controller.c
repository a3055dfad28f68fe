/* The loop of the job controller: what is queued is reconciled, then what waits is planned. */
#include "job/controller/controller.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "io/loop.h"
#include "job/controller/ages.h"
#include "job/controller/claims/claim_plans.h"
#include "job/controller/controller_internal.h"
#include "job/controller/disruption.h"
#include "job/controller/job_metrics.h"
#include "job/controller/launchers/progress.h"
#include "job/controller/observe.h"
#include "job/controller/plan_queue.h"
#include "job/controller/reconcile.h"

static bool is_ready(const struct controller *c)
{
        return c->jobs_synced && c->pods_synced && cluster_is_ready(c->options.cluster);
}

static void queue_all(struct controller *c)
{
        for (struct name_map_entry *e = name_map_first(&c->records); e != NULL;
             e = name_map_next(&c->records, e))
                controller_queue((struct record *) e);
}

/* Nothing is left to be done for it, and nobody will call back. */
static bool is_over(const struct record *record)
{
        return record->calls == 0 && record->pods == NULL && (record->gone || record->uid[0] == '\0');
}

static int on_later(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct controller *c = userdata;

        (void) source;
        (void) usec;
        (void) sd_event_source_set_enabled(c->work, SD_EVENT_ONESHOT);
        return 0;
}

static void plan_now_or_later(struct controller *c)
{
        uint64_t begin = clock_monotonic_usec();

        if (begin < c->plan_again_usec) {
                (void) sd_event_source_set_time(c->later, c->plan_again_usec);
                (void) sd_event_source_set_enabled(c->later, SD_EVENT_ONESHOT);
                return;
        }
        c->plan_wanted = false;
        plan_queue_run(c);
        c->plan_again_usec = begin + 10 * (clock_monotonic_usec() - begin);
}

static int work(sd_event_source *source, void *userdata)
{
        struct controller *c = userdata;
        struct record *record = c->first_queued, *next;

        (void) source;
        c->first_queued = NULL;
        c->last_queued = &c->first_queued;
        for (; record != NULL; record = next) {
                next = record->next_queued;
                record->queued = false;
                if (c->leading && is_ready(c) && record->uid[0] != '\0' && controller_may_look(record))
                        reconcile(record);
                if (!record->queued && is_over(record)) {
                        record_lease(record);
                        name_map_remove(&c->records, &record->entry);
                        progress_close(record);
                        record_free(record);
                }
        }
        if (c->plan_wanted && c->leading && is_ready(c))
                plan_now_or_later(c);
        return 0;
}

void controller_lead(struct controller *c)
{
        bool leads = controller_leads(c);

        for (struct name_map_entry *e = leads && !c->leading ? name_map_first(&c->records) : NULL; e != NULL;
             e = name_map_next(&c->records, e))
                record_forget_budget((struct record *) e); /* another one may have written */
        if (leads != c->leading)
                controller_log(c, LOG_NOTICE, "job-controller", "leading=%s", leads ? "yes" : "no");
        c->leading = leads;
        queue_all(c);
        controller_want_plan(c);
}

/* Once a second all is looked at: what depends on time, and what a lost message would leave undone. */
static void on_tick(void *userdata)
{
        struct controller *c = userdata;
        const struct liveness *l = &controller_ledger(c)->liveness;

        if (l->held != c->held)
                controller_log(c, l->held ? LOG_WARNING : LOG_NOTICE, "node-silence",
                               "believed=%s doubtful=%u of=%u", l->held ? "no" : "yes", l->doubtful,
                               l->judged);
        c->held = l->held;
        controller_lead(c);
        if (c->leading && is_ready(c))
                claim_plans_sweep(c);
}

void controller_think(struct controller *controller)
{
        if (controller != NULL)
                controller_want_plan(controller);
}

void controller_observe(struct controller *controller, enum store_kind kind, const char *key,
                        const json_t *object)
{
        if (kind == STORE_TRAINING_JOB)
                observe_job(controller, key, object);
        else if (kind == STORE_POD)
                observe_pod(controller, key, object);
        else if (kind == STORE_RESOURCE_CLAIM)
                claim_plans_observe(controller, key, object);
        else if (kind == STORE_INVENTORY || kind == STORE_NODE)
                observe_node(controller, key);
        else if (kind == STORE_DISRUPTION_BUDGET)
                disruption_observe(controller, key, object);
        else if (kind == STORE_KUEUE_WORKLOAD)
                kueue_observe_workload(controller, key, object);
        else if (kind == STORE_KUEUE_FLAVOR)
                kueue_observe_flavor(controller, key, object);
}

void controller_synced(struct controller *controller, enum store_kind kind)
{
        controller->jobs_synced = controller->jobs_synced || kind == STORE_TRAINING_JOB;
        controller->pods_synced = controller->pods_synced || kind == STORE_POD;
        controller->kueue.workloads_synced =
                controller->kueue.workloads_synced || kind == STORE_KUEUE_WORKLOAD;
        controller->kueue.flavors_synced = controller->kueue.flavors_synced || kind == STORE_KUEUE_FLAVOR;
        queue_all(controller);
}

struct controller_options controller_options_of(const struct server_options *options,
                                                const struct settings *settings)
{
        return (struct controller_options){
                .pods = { .launcher_image = options->launcher_image,
                          .job_image = options->job_image,
                          .scheduler_name = options->scheduler_name,
                          .pull_secrets = (const char *const *) settings->pull_secrets,
                          .pull_secret_count = settings->pull_secret_count,
                          .programs = options->programs != NULL ? &settings->programs : NULL,
                          .log_format = options->log_format,
                          .log_level = options->log_level,
                          .grace_sec = options->eviction_grace_sec > 0 ? options->eviction_grace_sec : 1 },
                .keep_pods_sec = options->keep_pods_sec,
                .pods_wait_sec = options->pods_wait_sec,
                .budgets = options->store != NULL && strcmp(options->store, "kubernetes") == 0,
                .no_budgets = options->no_disruption_budgets,
                .kueue = strcmp(options->kueue, "on") == 0,
                .planned_claims = strcmp(options->planned_claims, "on") == 0,
        };
}

int controller_new(sd_event *loop, const struct controller_options *options, struct controller **ret,
                   struct err *err)
{
        struct controller *c = calloc(1, sizeof(*c));
        int r;

        if (c == NULL)
                return err_set(err, -ENOMEM, "no memory");
        c->loop = sd_event_ref(loop);
        c->options = *options;
        c->last_queued = &c->first_queued;
        controller_ledger(c)->plans_claims = options->planned_claims;
        c->metrics.accepted_to_pods.bounds = histogram_duration_bounds;
        c->metrics.accepted_to_pods.bound_count = HISTOGRAM_DURATION_BOUNDS;
        r = sd_event_add_defer(loop, &c->work, work, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->work, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(loop, &c->later, CLOCK_MONOTONIC, 0, 1, on_later, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->later, SD_EVENT_OFF);
        if (r >= 0)
                r = loop_every(loop, 0, 1000000, on_tick, c, &c->tick);
        if (r < 0) {
                controller_free(c);
                return err_set(err, r, "job controller: no timers");
        }
        *ret = c;
        return 0;
}

void controller_free(struct controller *c)
{
        if (c == NULL)
                return;
        sd_event_source_disable_unref(c->work);
        sd_event_source_disable_unref(c->tick);
        sd_event_source_disable_unref(c->later);
        for (struct name_map_entry *e = name_map_first(&c->records), *next; e != NULL; e = next) {
                next = name_map_next(&c->records, e);
                progress_close((struct record *) e);
                record_free((struct record *) e);
        }
        name_map_free(&c->records);
        kueue_free(&c->kueue);
        claim_plan_list_free(&c->claim_plans);
        sd_event_unref(c->loop);
        free(c);
}

static void put_ages(const struct ages *ages, struct text *page)
{
        metrics_gauge(page, "remuda_jobs_starting_seconds",
                      "For how long the job with a plan waits to run that waits longest",
                      (double) ages->starting_usec / 1e6);
        metrics_gauge(page, "remuda_jobs_silent_seconds",
                      "For how long the running job was not heard of that is silent longest",
                      (double) ages->silent_usec / 1e6);
        metrics_gauge(page, "remuda_jobs_checkpoint_age_seconds",
                      "How old the oldest last checkpoint of a running job is that writes some to a claim",
                      (double) ages->checkpoint_usec / 1e6);
}

void controller_metrics(const struct controller *c, struct text *page)
{
        uint64_t phases[JOB_PHASE_COUNT] = { 0 }, refused = 0, queued = 0;
        struct ages ages = { 0 };

        if (c == NULL)
                return;
        for (const struct name_map_entry *e = name_map_first(&c->records); e != NULL;
             e = name_map_next(&c->records, e)) {
                const struct record *record = (const struct record *) e;

                if (record->uid[0] == '\0' || record->gone)
                        continue;
                phases[record->state.phase]++;
                queued += !job_phase_ended(record->state.phase) && record->queue.holds;
                refused += !job_phase_ended(record->state.phase) && job_state_is_refused(&record->state);
                if (c->leading) /* who does not lead asks no manager */
                        ages_add(&ages, &record->job, &record->state, controller_now(c));
        }
        metrics_family(page, "remuda_jobs", METRIC_GAUGE, "TrainingJobs, by phase");
        for (size_t i = 0; i < JOB_PHASE_COUNT; i++)
                metrics_sample_uint64(page, "remuda_jobs", METRIC_LABELS({ "phase", job_phase_names[i] }),
                                      phases[i]);
        metrics_gauge(page, "remuda_jobs_node_loss_held",
                      "1 while most nodes are silent, so that no job is taken from any of them",
                      controller_ledger(c)->liveness.held);
        metrics_gauge(page, "remuda_jobs_refused", "TrainingJobs whose pods the store refuses to make",
                      (double) refused);
        metrics_gauge(page, "remuda_jobs_queued", "TrainingJobs that Kueue has not admitted, or has evicted",
                      (double) queued);
        put_ages(&ages, page);
        metrics_gauge(page, "remuda_jobs_leading", "1 while this process carries jobs out", c->leading);
        metrics_family(page, "remuda_jobs_ended_total", METRIC_COUNTER, "Jobs that ended, by phase");
        for (size_t i = JOB_SUCCEEDED; i < JOB_PHASE_COUNT; i++)
                metrics_sample_uint64(page, "remuda_jobs_ended_total",
                                      METRIC_LABELS({ "phase", job_phase_names[i] }), c->metrics.ended[i]);
        metrics_counter(page, "remuda_jobs_planned_total", "Plans made", c->metrics.planned);
        metrics_counter(page, "remuda_job_faults_total", "Faults of running jobs", c->metrics.faults);
        metrics_counter(page, "remuda_job_restarts_total", "Worlds started anew after a fault",
                        c->metrics.restarts);
        metrics_counter(page, "remuda_job_recuts_total", "New shares of worlds while they ran",
                        c->metrics.recuts);
        metrics_counter(page, "remuda_job_launcher_crashes_total",
                        "Worlds started anew because mpirun crashed as it started",
                        c->metrics.launcher_crashes);
        metrics_counter(page, "remuda_job_moves_total", "Groups moved to other chips", c->metrics.moves);
        metrics_counter(page, "remuda_job_stragglers_total", "Ranks that were found slow among their like",
                        c->metrics.stragglers);
        metrics_counter(page, "remuda_job_pods_created_total", "Pods made", c->metrics.pods_created);
        metrics_counter(page, "remuda_job_pods_refused_total",
                        "Pods and Secrets that the store refused to make", c->metrics.pods_refused);
        metrics_counter(page, "remuda_job_plans_unbound_total",
                        "Plans given up since a pod was on no node for --pods-wait", c->metrics.unbound);
        metrics_counter(page, "remuda_job_pods_found_total", "Pods that were made and there already",
                        c->metrics.pods_existed);
        metrics_family(page, "remuda_job_pods_seconds", METRIC_HISTOGRAM,
                       "Time from a job's acceptance to the creation of its last pod");
        metrics_histogram(page, "remuda_job_pods_seconds", NULL, &c->metrics.accepted_to_pods);
        claim_plans_metrics(c, page);
        job_metrics_append(c, page);
}

/* Vendor probe: when each vendor is asked what, what is made of the answer, and of none. */
#include "agent/probe/vendor_probe.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/link_report_line.h"
#include "agent/probe/link_memory.h"
#include "agent/probe/probe_child.h"
#include "agent/probe/probe_driver.h"
#include "agent/probe/probe_process.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "io/loop.h"

#define VENDORS_MAX      AGENT_FACTS_LIBRARIES_MAX
#define ABANDONED_MAX    2
#define ABSENT_USEC      UINT64_C(300000000)
#define PAUSE_MIN_USEC   UINT64_C(1000000)
#define PAUSE_MAX_USEC   UINT64_C(30000000)
#define LINKS_PERIODS    6 /* between two requests about links */
#define LINKS_DEADLINES  4 /* for one */
#define LINKS_RETRY_USEC UINT64_C(600000000)

/* A vendor that is asked. */
struct asked {
        struct vendor_probe *probe;
        const struct probe_driver *driver;
        struct probe_process process;
        bool present; /* a device of it is on this node */
        enum agent_facts_state state;
        const char *why; /* it is silent; a literal */
        sd_event_source *timer;
        bool waiting; /* for the answer to a request */
        uint64_t asked_usec, pause_usec;
        bool about_links; /* that request is */
        uint64_t links_due_usec;
        struct link_report_list links; /* of the answer that is coming in */
        struct probe_sample *samples, *incoming;
        size_t sample_count, incoming_count;
        uint64_t last_success_usec, last_success_real_usec;
        uint64_t samples_total, timeouts_total, crashes_total, refused_total;
        struct histogram duration;
};

struct vendor_probe {
        const struct services *services;
        bool this_machine; /* this machine's libraries know of the devices */
        struct asked vendors[VENDORS_MAX];
        size_t vendor_count;
        struct link_memory *links;
};

static void ask(struct asked *v, bool about_links);

/* This machine's library knows nothing of a machine that is read from a directory or a record: there only a
 * library that the configuration names is asked. */
static bool may_ask(const struct asked *v)
{
        const struct agent_config *config = v->probe->services->config;

        return config->probes_enabled &&
               (v->probe->this_machine || agent_config_library(config, v->driver->vendor) != NULL);
}

static uint64_t period_usec(const struct asked *v)
{
        return (uint64_t) v->probe->services->config->probes_sec * 1000000;
}

static uint64_t deadline_usec(const struct asked *v)
{
        return (uint64_t) v->probe->services->config->probes_deadline_sec * 1000000;
}

/* A verdict of another kind than before is judged at once; figures wait for whoever reads them. */
static void become(struct asked *v, enum agent_facts_state state, const char *why)
{
        bool changed = v->state != state;

        v->state = state;
        v->why = why;
        if (!changed)
                return;
        log_line(v->probe->services->log, state == AGENT_FACTS_SILENT ? LOG_WARNING : LOG_INFO, "probe",
                 "vendor=%s state=%s why=\"%s\"", v->driver->vendor, agent_facts_states[state], why);
        if (state == AGENT_FACTS_SILENT)
                services_event(v->probe->services, "Warning", "HealthCheckFailed", NULL,
                               "the library of %s cannot be asked (%s): its devices are judged by what the "
                               "kernel says alone",
                               v->driver->vendor, why);
        services_scan(v->probe->services, "library");
}

static uint64_t next_pause(struct asked *v)
{
        uint64_t pause = v->pause_usec < PAUSE_MIN_USEC ? PAUSE_MIN_USEC : v->pause_usec;

        v->pause_usec = pause * 2 > PAUSE_MAX_USEC ? PAUSE_MAX_USEC : pause * 2;
        return pause;
}

/* What has come of the answer so far is of no use. */
static void forget_answer(struct asked *v)
{
        v->waiting = false;
        v->incoming_count = 0;
        link_report_list_free(&v->links);
}

static void stop(struct asked *v)
{
        probe_process_kill(&v->process);
        forget_answer(v);
}

static void on_end(void *userdata, const siginfo_t *info)
{
        struct asked *v = userdata;
        bool by_itself = info->si_code == CLD_EXITED;

        forget_answer(v);
        if (by_itself && info->si_status == PROBE_CHILD_EXIT_ABSENT) {
                become(v, AGENT_FACTS_ABSENT, "no library");
                loop_rearm(v->timer, ABSENT_USEC);
                return;
        }
        if (by_itself && info->si_status == PROBE_CHILD_EXIT_REFUSED)
                become(v, AGENT_FACTS_SILENT, "the library refuses to start");
        else {
                v->crashes_total++;
                become(v, AGENT_FACTS_SILENT, "the library crashed");
        }
        loop_rearm(v->timer, next_pause(v));
}

static void on_nonsense(void *userdata)
{
        struct asked *v = userdata;

        v->crashes_total++;
        become(v, AGENT_FACTS_SILENT, "the child speaks nonsense");
        stop(v);
        loop_rearm(v->timer, next_pause(v));
}

/* What cannot be true together is not believed. */
static void refuse_lies(struct asked *v, struct probe_sample *s)
{
        if (s->values[PROBE_MEMORY_USED] > s->values[PROBE_MEMORY_TOTAL]) {
                s->values[PROBE_MEMORY_USED] = s->values[PROBE_MEMORY_TOTAL] = NAN;
                s->values[PROBE_MEMORY_RESERVED] = NAN;
                v->refused_total++;
        }
}

static bool take_sample(struct asked *v, const char *line, size_t size_bytes)
{
        struct probe_sample sample, *more;
        unsigned refused = 0;

        if (probe_sample_decode(line, size_bytes, &sample, &refused, NULL) < 0 ||
            v->incoming_count >= DEVICES_MAX)
                return false;
        v->refused_total += refused;
        refuse_lies(v, &sample);
        more = array_add(&v->incoming, &v->incoming_count, NULL, sizeof(*more));
        if (more == NULL)
                return false;
        *more = sample;
        return true;
}

static bool same_findings(const struct asked *v)
{
        if (v->sample_count != v->incoming_count)
                return false;
        for (size_t i = 0; i < v->sample_count; i++)
                if (strcmp(v->samples[i].pci, v->incoming[i].pci) != 0 ||
                    memcmp(&v->samples[i].finding, &v->incoming[i].finding, sizeof(struct finding)) != 0)
                        return false;
        return true;
}

static void finish_answer(struct asked *v)
{
        uint64_t now = loop_now_usec(v->probe->services->loop);
        bool same = same_findings(v), answered = v->state == AGENT_FACTS_ANSWERS;
        struct probe_sample *samples = v->samples;

        histogram_observe(&v->duration, (double) (now - v->asked_usec) / 1e6);
        v->samples = v->incoming;
        v->sample_count = v->incoming_count;
        v->incoming = samples;
        v->incoming_count = 0;
        v->waiting = false;
        v->pause_usec = 0;
        v->samples_total++;
        v->last_success_usec = now;
        v->last_success_real_usec = loop_realtime_usec(v->probe->services->loop);
        become(v, AGENT_FACTS_ANSWERS, "it answers");
        if (answered && !same)
                services_scan(v->probe->services, "library");
        if (v->driver->links && now >= v->links_due_usec)
                ask(v, true);
        else
                loop_rearm(v->timer, period_usec(v));
}

static void finish_links(struct asked *v)
{
        bool news = link_memory_take(v->probe->links, v->driver->vendor, &v->links);

        v->waiting = false;
        link_report_list_free(&v->links);
        v->links_due_usec = loop_now_usec(v->probe->services->loop) + LINKS_PERIODS * period_usec(v);
        if (news)
                services_scan(v->probe->services, "links");
        loop_rearm(v->timer, period_usec(v));
}

static bool take_links(struct asked *v, const char *line, size_t size_bytes)
{
        struct link_report report;

        return link_report_line_decode(v->driver->vendor, line, size_bytes, &report, NULL) == 0 &&
               link_report_list_put(&v->links, &report) == 0;
}

/* Return: false when the child is not to be spoken with any more. */
static bool on_line(void *userdata, const char *line, size_t size_bytes)
{
        struct asked *v = userdata;

        if (!v->waiting)
                return false; /* it speaks without being asked */
        if (size_bytes == 3 && memcmp(line, "end", 3) == 0) {
                (v->about_links ? finish_links : finish_answer)(v);
                return true;
        }
        if (size_bytes >= 5 && memcmp(line, "error", 5) == 0) {
                forget_answer(v);
                if (!v->about_links)
                        become(v, AGENT_FACTS_SILENT, "the library says that it cannot tell");
                loop_rearm(v->timer, period_usec(v));
                return true;
        }
        return v->about_links ? take_links(v, line, size_bytes) : take_sample(v, line, size_bytes);
}

static void ask(struct asked *v, bool about_links)
{
        const char *library = agent_config_library(v->probe->services->config, v->driver->vendor);

        if (v->process.pid == 0 && v->process.dying_count >= ABANDONED_MAX) {
                become(v, AGENT_FACTS_SILENT, "too many of its children hang in the kernel");
                loop_rearm(v->timer, PAUSE_MAX_USEC);
                return;
        }
        if (v->process.pid == 0 && probe_process_start(&v->process, library != NULL ? library : "") < 0) {
                become(v, AGENT_FACTS_SILENT, "no child could be started");
                loop_rearm(v->timer, next_pause(v));
                return;
        }
        v->waiting = true;
        v->asked_usec = loop_now_usec(v->probe->services->loop);
        v->incoming_count = 0;
        v->about_links = about_links;
        if (about_links) /* until it has answered */
                v->links_due_usec = v->asked_usec + LINKS_RETRY_USEC;
        probe_process_request(&v->process,
                              about_links ? PROBE_CHILD_REQUEST_LINKS : PROBE_CHILD_REQUEST_SAMPLES);
        loop_rearm(v->timer, about_links ? LINKS_DEADLINES * deadline_usec(v) : deadline_usec(v));
}

static void on_timer(void *userdata)
{
        struct asked *v = userdata;

        if (!v->present || !may_ask(v)) {
                stop(v);
                v->state = AGENT_FACTS_STARTING; /* what it was tells nothing once it is asked again */
                return;
        }
        if (!v->waiting) {
                ask(v, false);
                return;
        }
        v->timeouts_total++;
        stop(v);
        if (!v->about_links)
                become(v, AGENT_FACTS_SILENT, "the library hangs");
        loop_rearm(v->timer, next_pause(v));
}

int vendor_probe_new(const struct services *services, bool this_machine, const char *links_directory,
                     struct vendor_probe **ret, struct err *err)
{
        struct vendor_probe *probe = calloc(1, sizeof(*probe));
        int r;

        if (probe == NULL)
                return err_set(err, -ENOMEM, "no memory for the probes");
        probe->services = services;
        probe->this_machine = this_machine;
        probe->links = link_memory_new(links_directory, services->log);
        if (probe->links == NULL) {
                free(probe);
                return err_set(err, -ENOMEM, "no memory for the probes");
        }
        for (const struct probe_driver *driver = probe_drivers;
             driver->vendor != NULL && probe->vendor_count < VENDORS_MAX; driver++) {
                struct asked *v;

                if (probe->vendor_count > 0 &&
                    strcmp(probe->vendors[probe->vendor_count - 1].driver->vendor, driver->vendor) == 0)
                        continue; /* another library of the same vendor: its child chooses */
                v = &probe->vendors[probe->vendor_count++];
                *v = (struct asked){ .probe = probe, .driver = driver, .state = AGENT_FACTS_STARTING };
                probe_process_init(&v->process, &(struct probe_process){ .loop = services->loop,
                                                                         .vendor = driver->vendor,
                                                                         .on_line = on_line,
                                                                         .on_nonsense = on_nonsense,
                                                                         .on_end = on_end,
                                                                         .userdata = v });
                v->duration.bounds = histogram_duration_bounds;
                v->duration.bound_count = HISTOGRAM_DURATION_BOUNDS;
                r = loop_timer(services->loop, on_timer, v, &v->timer);
                if (r < 0) {
                        vendor_probe_free(probe);
                        return err_set(err, r, "make the timer of a probe: %s", strerrordesc_np(-r));
                }
        }
        *ret = probe;
        return 0;
}

void vendor_probe_free(struct vendor_probe *probe)
{
        if (probe == NULL)
                return;
        for (size_t i = 0; i < probe->vendor_count; i++) {
                struct asked *v = &probe->vendors[i];

                probe_process_free(&v->process);
                sd_event_source_disable_unref(v->timer);
                link_report_list_free(&v->links);
                free(v->samples);
                free(v->incoming);
        }
        link_memory_free(probe->links);
        free(probe);
}

const struct link_report_list *vendor_probe_links(const struct vendor_probe *probe)
{
        return probe != NULL ? link_memory_believed(probe->links) : NULL;
}

void vendor_probe_update(struct vendor_probe *probe, const struct inventory *inventory)
{
        for (size_t i = 0; probe != NULL && i < probe->vendor_count; i++) {
                struct asked *v = &probe->vendors[i];
                bool was = v->present;

                v->present = false;
                for (size_t k = 0; k < inventory->device_count && !v->present; k++)
                        v->present = strcmp(inventory->devices[k].vendor, v->driver->vendor) == 0;
                if (v->present && !was && may_ask(v))
                        loop_rearm(v->timer, 0);
        }
}

void vendor_probe_configure(struct vendor_probe *probe)
{
        for (size_t i = 0; i < probe->vendor_count; i++)
                if (probe->vendors[i].present) {
                        stop(&probe->vendors[i]); /* another library, another deadline: begin anew */
                        probe->vendors[i].links_due_usec = 0;
                        loop_rearm(probe->vendors[i].timer, 0);
                }
}

static const struct asked *find_vendor(const struct vendor_probe *probe, const char *vendor)
{
        for (size_t i = 0; probe != NULL && i < probe->vendor_count; i++)
                if (strcmp(probe->vendors[i].driver->vendor, vendor) == 0)
                        return &probe->vendors[i];
        return NULL;
}

const struct probe_sample *vendor_probe_sample(const struct vendor_probe *probe, const struct device *device)
{
        const struct asked *v = find_vendor(probe, device->vendor);
        uint64_t now;

        if (v == NULL || device->pci[0] == '\0' || v->last_success_usec == 0)
                return NULL;
        now = loop_now_usec(probe->services->loop);
        if (now - v->last_success_usec > 3 * period_usec(v) + deadline_usec(v))
                return NULL;
        for (size_t i = 0; i < v->sample_count; i++)
                if (strcmp(v->samples[i].pci, device->pci) == 0)
                        return &v->samples[i];
        return NULL;
}

void vendor_probe_look(const struct vendor_probe *probe, const struct device *device, struct finding *finding)
{
        const struct asked *v = find_vendor(probe, device->vendor);
        const struct probe_sample *sample;
        enum finding_level level;

        if (v == NULL || (v->state != AGENT_FACTS_ANSWERS && v->state != AGENT_FACTS_SILENT))
                return;
        if (v->state == AGENT_FACTS_SILENT) {
                if (agent_config_level(probe->services->config, "library-silent", FINDING_SILENT) !=
                    FINDING_GOOD)
                        finding_add(finding, FINDING_SILENT, "library-silent", "ProbeSilent",
                                    "its vendor's library cannot be asked: %s", v->why);
                return;
        }
        sample = vendor_probe_sample(probe, device);
        if (sample == NULL || sample->finding.level == FINDING_GOOD)
                return;
        level = agent_config_level(probe->services->config, sample->finding.rule, sample->finding.level);
        finding_add(finding, level, sample->finding.rule, sample->finding.reason, "%s",
                    sample->finding.message);
}

bool vendor_probe_status(const struct vendor_probe *probe, size_t i, struct vendor_probe_status *ret)
{
        const struct asked *v;

        if (probe == NULL || i >= probe->vendor_count)
                return false;
        v = &probe->vendors[i];
        *ret = (struct vendor_probe_status){ .vendor = v->present ? v->driver->vendor : NULL,
                                             .asked = v->present && may_ask(v),
                                             .state = v->state,
                                             .why = v->why,
                                             .samples_total = v->samples_total,
                                             .timeouts_total = v->timeouts_total,
                                             .crashes_total = v->crashes_total,
                                             .refused_total = v->refused_total,
                                             .last_success_usec = v->last_success_real_usec,
                                             .duration = &v->duration };
        return true;
}

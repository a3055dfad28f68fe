#include "agent/probe/deep.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/inventory/link_report_line.h"
#include "agent/probe/driver.h"
#include "agent/probe/links.h"
#include "agent/watch.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"

#define CHILD_NICE       10 /* a tenth of a core that others want too, all of one that they do not */
#define VENDORS_MAX      16
#define ABANDONED_MAX    2
#define ANSWER_MAX_BYTES ((size_t) 4 << 20)
#define ABSENT_USEC      UINT64_C(300000000)
#define PAUSE_MIN_USEC   UINT64_C(1000000)
#define PAUSE_MAX_USEC   UINT64_C(30000000)
#define LINKS_PERIODS    6 /* between two questions about links */
#define LINKS_DEADLINES  4 /* for one */
#define LINKS_RETRY_USEC UINT64_C(600000000)

struct vendor {
        struct deep *deep;
        const struct probe_driver *driver;
        bool present; /* a device of it is on this node */
        enum deep_state state;
        const char *why; /* it is silent; a literal */
        pid_t pid;       /* 0 = no child */
        int in_fd, out_fd;
        sd_event_source *child_source, *out_source, *timer;
        struct text answer; /* of the question that is asked */
        bool asked;
        uint64_t asked_usec, pause_usec;
        bool about_links; /* that question is */
        uint64_t links_due_usec;
        struct link_reports links; /* of the answer that is coming in */
        struct probe_sample *samples, *incoming;
        size_t sample_count, incoming_count;
        uint64_t last_success_usec, last_success_real_usec;
        uint64_t samples_total, timeouts_total, crashes_total, refused_total;
        unsigned abandoned;
        struct histogram duration;
};

/* A child that was killed and is not dead yet. */
struct abandoned {
        struct vendor *vendor;
        sd_event_source *source;
        struct abandoned *next;
};

struct deep {
        struct agent *agent;
        struct vendor vendors[VENDORS_MAX];
        size_t vendor_count;
        struct link_memory *links;
        struct abandoned *abandoned;
};

static void arm(struct vendor *v, uint64_t delay_usec);
static void ask(struct vendor *v, bool about_links);

/* This machine's library knows nothing of a machine that is read from a directory or a record: there only a
 * library that the configuration names is asked. */
static bool may_ask(const struct vendor *v)
{
        const struct agent *a = v->deep->agent;

        return a->config.probes_enabled && (agent_config_library(&a->config, v->driver->vendor) != NULL ||
                                            (a->options->machine == NULL && watch_is_live(a->options->root)));
}

static uint64_t period_usec(const struct vendor *v)
{
        return (uint64_t) v->deep->agent->config.probes_sec * 1000000;
}

static uint64_t deadline_usec(const struct vendor *v)
{
        return (uint64_t) v->deep->agent->config.probes_deadline_sec * 1000000;
}

/* A verdict of another kind than before is judged at once; figures wait for whoever reads them. */
static void become(struct vendor *v, enum deep_state state, const char *why)
{
        bool changed = v->state != state;

        v->state = state;
        v->why = why;
        if (!changed)
                return;
        log_line(&v->deep->agent->log, state == DEEP_SILENT ? LOG_WARNING : LOG_INFO, "probe",
                 "vendor=%s state=%s why=\"%s\"", v->driver->vendor, deep_state_name(state), why);
        agent_scan(v->deep->agent, "library");
}

/* --- a child's end
 * ------------------------------------------------------------------------------------------ */

static int on_abandoned_exit(sd_event_source *source, const siginfo_t *info, void *userdata)
{
        struct abandoned *a = userdata, **at = &a->vendor->deep->abandoned;

        (void) info;
        while (*at != a)
                at = &(*at)->next;
        *at = a->next;
        a->vendor->abandoned--;
        (void) sd_event_source_unref(source);
        free(a);
        return 0;
}

static void close_pipes(struct vendor *v)
{
        v->out_source = sd_event_source_disable_unref(v->out_source);
        if (v->in_fd >= 0)
                (void) close(v->in_fd);
        if (v->out_fd >= 0)
                (void) close(v->out_fd);
        v->in_fd = v->out_fd = -1;
        v->asked = false;
        text_reset(&v->answer);
        v->incoming_count = 0;
        link_reports_free(&v->links);
}

/* SIGKILL, and from now on somebody else's business: the loop reaps it whenever the kernel lets it die. */
static void kill_child(struct vendor *v)
{
        struct abandoned *a = v->pid > 0 ? calloc(1, sizeof(*a)) : NULL;
        pid_t pid = v->pid;

        close_pipes(v);
        if (pid <= 0)
                return;
        v->child_source = sd_event_source_disable_unref(v->child_source);
        v->pid = 0;
        (void) kill(pid, SIGKILL);
        if (a == NULL)
                return;
        a->vendor = v;
        if (sd_event_add_child(v->deep->agent->loop, &a->source, pid, WEXITED, on_abandoned_exit, a) < 0) {
                free(a);
                return;
        }
        a->next = v->deep->abandoned;
        v->deep->abandoned = a;
        v->abandoned++;
}

static uint64_t next_pause(struct vendor *v)
{
        uint64_t pause = v->pause_usec < PAUSE_MIN_USEC ? PAUSE_MIN_USEC : v->pause_usec;

        v->pause_usec = pause * 2 > PAUSE_MAX_USEC ? PAUSE_MAX_USEC : pause * 2;
        return pause;
}

static int on_child_exit(sd_event_source *source, const siginfo_t *info, void *userdata)
{
        struct vendor *v = userdata;
        bool by_itself = info->si_code == CLD_EXITED;

        (void) source;
        v->child_source = sd_event_source_unref(v->child_source);
        v->pid = 0;
        close_pipes(v);
        if (by_itself && info->si_status == PROBE_EXIT_ABSENT) {
                become(v, DEEP_ABSENT, "no library");
                arm(v, ABSENT_USEC);
                return 0;
        }
        if (by_itself && info->si_status == PROBE_EXIT_REFUSED)
                become(v, DEEP_SILENT, "the library refuses to start");
        else {
                v->crashes_total++;
                become(v, DEEP_SILENT, "the library crashed");
        }
        arm(v, next_pause(v));
        return 0;
}

/* --- questions and answers
 * ----------------------------------------------------------------------------------- */

/* What cannot be true together is not believed. */
static void refuse_lies(struct vendor *v, struct probe_sample *s)
{
        if (s->values[PROBE_MEMORY_USED] > s->values[PROBE_MEMORY_TOTAL]) {
                s->values[PROBE_MEMORY_USED] = s->values[PROBE_MEMORY_TOTAL] = NAN;
                v->refused_total++;
        }
}

static bool take_sample(struct vendor *v, const char *line, size_t size_bytes)
{
        struct probe_sample sample, *more;
        unsigned refused = 0;

        if (probe_sample_decode(line, size_bytes, &sample, &refused, NULL) < 0 ||
            v->incoming_count >= DEVICES_MAX)
                return false;
        v->refused_total += refused;
        refuse_lies(v, &sample);
        more = realloc(v->incoming, (v->incoming_count + 1) * sizeof(*more));
        if (more == NULL)
                return false;
        v->incoming = more;
        v->incoming[v->incoming_count++] = sample;
        return true;
}

static bool same_findings(const struct vendor *v)
{
        if (v->sample_count != v->incoming_count)
                return false;
        for (size_t i = 0; i < v->sample_count; i++)
                if (strcmp(v->samples[i].pci, v->incoming[i].pci) != 0 ||
                    memcmp(&v->samples[i].finding, &v->incoming[i].finding, sizeof(struct finding)) != 0)
                        return false;
        return true;
}

static void finish_answer(struct vendor *v)
{
        uint64_t now = loop_now_usec(v->deep->agent->loop);
        bool same = same_findings(v), answered = v->state == DEEP_ANSWERS;
        struct probe_sample *samples = v->samples;

        histogram_observe(&v->duration, (double) (now - v->asked_usec) / 1e6);
        v->samples = v->incoming;
        v->sample_count = v->incoming_count;
        v->incoming = samples;
        v->incoming_count = 0;
        v->asked = false;
        v->pause_usec = 0;
        v->samples_total++;
        v->last_success_usec = now;
        v->last_success_real_usec = loop_realtime_usec(v->deep->agent->loop);
        become(v, DEEP_ANSWERS, "it answers");
        if (answered && !same)
                agent_scan(v->deep->agent, "library");
        if (v->driver->links != NULL && now >= v->links_due_usec)
                ask(v, true);
        else
                arm(v, period_usec(v));
}

static void finish_links(struct vendor *v)
{
        bool news = link_memory_take(v->deep->links, v->driver->vendor, &v->links);

        v->asked = false;
        link_reports_free(&v->links);
        v->links_due_usec = loop_now_usec(v->deep->agent->loop) + LINKS_PERIODS * period_usec(v);
        if (news)
                agent_scan(v->deep->agent, "links");
        arm(v, period_usec(v));
}

static bool take_links(struct vendor *v, const char *line, size_t size_bytes)
{
        struct link_report report;

        return link_report_decode(v->driver->vendor, line, size_bytes, &report, NULL) == 0 &&
               link_reports_put(&v->links, &report) == 0;
}

/* Return: false when the child is not to be spoken with any more. */
static bool take_line(struct vendor *v, const char *line, size_t size_bytes)
{
        if (!v->asked)
                return false; /* it speaks without being asked */
        if (size_bytes == 3 && memcmp(line, "end", 3) == 0) {
                (v->about_links ? finish_links : finish_answer)(v);
                return true;
        }
        if (size_bytes >= 5 && memcmp(line, "error", 5) == 0) {
                v->asked = false;
                v->incoming_count = 0;
                link_reports_free(&v->links);
                if (!v->about_links)
                        become(v, DEEP_SILENT, "the library says that it cannot tell");
                arm(v, period_usec(v));
                return true;
        }
        return v->about_links ? take_links(v, line, size_bytes) : take_sample(v, line, size_bytes);
}

static bool take_lines(struct vendor *v)
{
        size_t at = 0;

        while (at < v->answer.size_bytes) {
                const char *line = v->answer.data + at, *end;

                end = memchr(line, '\n', v->answer.size_bytes - at);
                if (end == NULL)
                        break;
                at += (size_t) (end - line) + 1;
                if (!take_line(v, line, (size_t) (end - line)))
                        return false;
        }
        if (at > 0) { /* keep what is not whole yet */
                memmove(v->answer.data, v->answer.data + at, v->answer.size_bytes - at);
                v->answer.size_bytes -= at;
        }
        return true;
}

static int on_answer(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct vendor *v = userdata;
        char buffer[8192];
        ssize_t n = read(fd, buffer, sizeof(buffer));

        (void) source;
        (void) revents;
        if (n > 0) {
                text_append_bytes(&v->answer, buffer, (size_t) n);
                if (!v->answer.failed && take_lines(v))
                        return 0;
                v->crashes_total++;
                become(v, DEEP_SILENT, "the child speaks nonsense");
                kill_child(v);
                arm(v, next_pause(v));
        } else if (n == 0)
                v->out_source = sd_event_source_disable_unref(v->out_source); /* its end comes as a signal */
        return 0;
}

/* --- a child's beginning
 * --------------------------------------------------------------------------------------- */

static int spawn(struct vendor *v, const int in[2], const int out[2])
{
        const char *library = agent_config_library(&v->deep->agent->config, v->driver->vendor);
        char *const argv[] = { (char *) "remuda-agent", (char *) PROBE_CHILD_ARGUMENT,
                               (char *) v->driver->vendor, (char *) (library != NULL ? library : ""), NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none;
        int r;

        (void) sigemptyset(&none);
        (void) posix_spawn_file_actions_init(&actions);
        (void) posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        (void) posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        (void) posix_spawnattr_init(&attributes);
        (void) posix_spawnattr_setsigmask(&attributes, &none);
        (void) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        r = posix_spawn(&v->pid, "/proc/self/exe", &actions, &attributes, argv, environ);
        (void) posix_spawnattr_destroy(&attributes);
        (void) posix_spawn_file_actions_destroy(&actions);
        if (r != 0)
                v->pid = 0;
        else /* before it links and starts: the kubelet and whoever asks us come first */
                (void) setpriority(PRIO_PROCESS, (id_t) v->pid, CHILD_NICE);
        return -r;
}

static int start_child(struct vendor *v)
{
        sd_event *loop = v->deep->agent->loop;
        int in[2] = { -1, -1 }, out[2] = { -1, -1 }, r = 0;

        if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
                r = -errno;
        if (r == 0)
                r = spawn(v, in, out);
        if (in[0] >= 0)
                (void) close(in[0]);
        if (out[1] >= 0)
                (void) close(out[1]);
        v->in_fd = in[1];
        v->out_fd = out[0];
        if (r == 0 && (fcntl(v->in_fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(v->out_fd, F_SETFL, O_NONBLOCK) < 0))
                r = -errno;
        if (r == 0)
                r = sd_event_add_child(loop, &v->child_source, v->pid, WEXITED, on_child_exit, v);
        if (r >= 0)
                r = sd_event_add_io(loop, &v->out_source, v->out_fd, EPOLLIN, on_answer, v);
        if (r < 0)
                kill_child(v);
        return r;
}

static void ask(struct vendor *v, bool about_links)
{
        const char question = about_links ? PROBE_ASK_LINKS : PROBE_ASK_SAMPLES;

        if (v->pid == 0 && v->abandoned >= ABANDONED_MAX) {
                become(v, DEEP_SILENT, "too many of its children hang in the kernel");
                arm(v, PAUSE_MAX_USEC);
                return;
        }
        if (v->pid == 0 && start_child(v) < 0) {
                become(v, DEEP_SILENT, "no child could be started");
                arm(v, next_pause(v));
                return;
        }
        v->asked = true;
        v->asked_usec = loop_now_usec(v->deep->agent->loop);
        v->incoming_count = 0;
        v->about_links = about_links;
        if (about_links) /* until it has answered */
                v->links_due_usec = v->asked_usec + LINKS_RETRY_USEC;
        if (write(v->in_fd, &question, 1) != 1) {
                /* it is ending, or its pipe is full of questions: the deadline or its end decides */
        }
        arm(v, about_links ? LINKS_DEADLINES * deadline_usec(v) : deadline_usec(v));
}

static void on_timer(void *userdata)
{
        struct vendor *v = userdata;

        v->timer = sd_event_source_unref(v->timer);
        if (!v->present || !may_ask(v)) {
                kill_child(v);
                v->state = DEEP_ABSENT;
                return;
        }
        if (!v->asked) {
                ask(v, false);
                return;
        }
        v->timeouts_total++;
        kill_child(v);
        if (!v->about_links)
                become(v, DEEP_SILENT, "the library hangs");
        arm(v, next_pause(v));
}

static void arm(struct vendor *v, uint64_t delay_usec)
{
        v->timer = sd_event_source_disable_unref(v->timer);
        (void) loop_after(v->deep->agent->loop, delay_usec, on_timer, v, &v->timer);
}

/* --- life
 * ---------------------------------------------------------------------------------------------------------
 */

/* Beside what runs: of this machine, or inside a directory that is read as one; a record has none. */
static void place_links(const struct agent *a, char *ret, size_t ret_bytes)
{
        const char *root = a->options->root, *state = a->options->state;

        ret[0] = '\0';
        if (a->options->machine == NULL && (state == NULL || strcmp(state, "none") != 0))
                (void) text_format(ret, ret_bytes, "%s/" LINK_REPORT_LINE_FOLDER,
                                   watch_is_live(root) ? "" : root);
}

int deep_new(struct agent *agent, struct deep **ret, struct err *err)
{
        struct deep *d = calloc(1, sizeof(*d));
        char directory[900];

        if (d == NULL)
                return err_set(err, -ENOMEM, "no memory for the probes");
        d->agent = agent;
        place_links(agent, directory, sizeof(directory));
        d->links = link_memory_new(directory, &agent->log);
        if (d->links == NULL) {
                free(d);
                return err_set(err, -ENOMEM, "no memory for the probes");
        }
        for (const struct probe_driver *driver = probe_drivers;
             driver->vendor != NULL && d->vendor_count < VENDORS_MAX; driver++) {
                struct vendor *v;

                if (d->vendor_count > 0 &&
                    strcmp(d->vendors[d->vendor_count - 1].driver->vendor, driver->vendor) == 0)
                        continue; /* another library of the same vendor: its child chooses */
                v = &d->vendors[d->vendor_count++];
                *v = (struct vendor){ .deep = d, .driver = driver, .in_fd = -1, .out_fd = -1 };
                v->answer.max_bytes = ANSWER_MAX_BYTES;
                v->duration.bounds = histogram_duration_bounds;
                v->duration.bound_count = HISTOGRAM_DURATION_BOUNDS;
        }
        *ret = d;
        return 0;
}

void deep_free(struct deep *d)
{
        if (d == NULL)
                return;
        for (size_t i = 0; i < d->vendor_count; i++) {
                struct vendor *v = &d->vendors[i];

                kill_child(v);
                (void) sd_event_source_unref(v->timer);
                text_free(&v->answer);
                link_reports_free(&v->links);
                free(v->samples);
                free(v->incoming);
        }
        while (d->abandoned != NULL) {
                struct abandoned *a = d->abandoned;

                d->abandoned = a->next;
                (void) sd_event_source_unref(a->source);
                free(a);
        }
        link_memory_free(d->links);
        free(d);
}

const struct link_reports *deep_links(const struct deep *d)
{
        return d != NULL ? link_memory_believed(d->links) : NULL;
}

void deep_update(struct deep *d, const struct inventory *inventory)
{
        for (size_t i = 0; i < d->vendor_count; i++) {
                struct vendor *v = &d->vendors[i];
                bool was = v->present;

                v->present = false;
                for (size_t k = 0; k < inventory->device_count && !v->present; k++)
                        v->present = strcmp(inventory->devices[k].vendor, v->driver->vendor) == 0;
                if (v->present && !was && may_ask(v))
                        arm(v, 0);
        }
}

void deep_configure(struct deep *d)
{
        for (size_t i = 0; i < d->vendor_count; i++)
                if (d->vendors[i].present) {
                        kill_child(&d->vendors[i]); /* another library, another deadline: begin anew */
                        d->vendors[i].links_due_usec = 0;
                        arm(&d->vendors[i], 0);
                }
}

static const struct vendor *find_vendor(const struct deep *d, const char *vendor)
{
        for (size_t i = 0; d != NULL && i < d->vendor_count; i++)
                if (strcmp(d->vendors[i].driver->vendor, vendor) == 0)
                        return &d->vendors[i];
        return NULL;
}

const struct probe_sample *deep_sample(const struct deep *d, const struct device *device)
{
        const struct vendor *v = find_vendor(d, device->vendor);
        uint64_t now;

        if (v == NULL || device->pci[0] == '\0' || v->last_success_usec == 0)
                return NULL;
        now = loop_now_usec(d->agent->loop);
        if (now - v->last_success_usec > 3 * period_usec(v) + deadline_usec(v))
                return NULL;
        for (size_t i = 0; i < v->sample_count; i++)
                if (strcmp(v->samples[i].pci, device->pci) == 0)
                        return &v->samples[i];
        return NULL;
}

void deep_look(const struct deep *d, const struct device *device, struct finding *finding)
{
        const struct vendor *v = find_vendor(d, device->vendor);
        const struct probe_sample *sample;
        enum finding_level level;

        if (v == NULL || v->state == DEEP_ABSENT)
                return;
        if (v->state == DEEP_SILENT) {
                if (agent_config_level(&d->agent->config, "library-silent", FINDING_SILENT) != FINDING_GOOD)
                        finding_add(finding, FINDING_SILENT, "library-silent", "ProbeSilent",
                                    "its vendor's library cannot be asked: %s", v->why);
                return;
        }
        sample = deep_sample(d, device);
        if (sample == NULL || sample->finding.level == FINDING_GOOD)
                return;
        level = agent_config_level(&d->agent->config, sample->finding.rule, sample->finding.level);
        finding_add(finding, level, sample->finding.rule, sample->finding.reason, "%s",
                    sample->finding.message);
}

const char *deep_state_name(enum deep_state state)
{
        static const char *const names[DEEP_STATE_COUNT] = {
                [DEEP_ABSENT] = "absent",
                [DEEP_STARTING] = "starting",
                [DEEP_ANSWERS] = "answers",
                [DEEP_SILENT] = "silent",
        };

        return names[state];
}

bool deep_status(const struct deep *d, size_t i, struct deep_status *ret)
{
        const struct vendor *v;

        if (d == NULL || i >= d->vendor_count)
                return false;
        v = &d->vendors[i];
        *ret = (struct deep_status){ .vendor = v->present ? v->driver->vendor : NULL,
                                     .state = v->state,
                                     .samples_total = v->samples_total,
                                     .timeouts_total = v->timeouts_total,
                                     .crashes_total = v->crashes_total,
                                     .refused_total = v->refused_total,
                                     .abandoned = v->abandoned,
                                     .last_success_usec = v->last_success_real_usec,
                                     .duration = &v->duration };
        return true;
}

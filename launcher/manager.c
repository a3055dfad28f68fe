/* The manager of a job over several device groups: waits for them, tells each its part, and runs mpirun,
 * whose daemons are started on the groups through the same connection instead of SSH. */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/exit_code.h"
#include "core/text.h"
#include "io/grpc_server.h"
#include "launcher/environment.h"
#include "launcher/rendezvous.h"
#include "launcher/subtask.h"
#include "launcher/supervise.h"

#define ORDERS_MAX     8 /* that wait for one group */
#define LINE_MAX_WORDS 4096
#define FAREWELL_USEC  500000 /* for the last orders to be read */

struct waiting_order {
        uint8_t *bytes;
        size_t size;
};

struct member {
        struct manager *manager;
        const struct subtask_group *plan;
        struct grpc_call *join;  /* NULL = not there */
        struct grpc_call *start; /* mpirun's agent that waits for this group's daemon */
        struct waiting_order orders[ORDERS_MAX];
        size_t order_count;
        uint64_t subtask_order, start_order;
        bool ready;
};

struct manager {
        const struct rendezvous_options *options;
        struct rendezvous_loop loop;
        struct tls *tls;
        struct grpc_server *server;
        sd_event_source *deadline;
        char token[RENDEZVOUS_TOKEN_BYTES];
        char token_file[PATH_MAX], self[PATH_MAX], mpirun_path[PATH_MAX], folder[64], host[128];
        unsigned port; /* for frameworks other than MPI */
        struct subtask_plan plan;
        struct member *members;
        uint64_t last_order;
        pid_t mpirun; /* its supervisor; 0 = not running */
        bool started, ending;
        int exit_code;
        char last_refusal[160];
};

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
        va_list values;

        va_start(values, fmt);
        (void) fputs("remuda-launch: manager: ", stderr);
        (void) vfprintf(stderr, fmt, values);
        (void) fputc('\n', stderr);
        va_end(values);
}

/* --- orders
 * -------------------------------------------------------------------------------------------------------------
 */

static void send_next(struct member *member)
{
        if (member->join == NULL || member->order_count == 0 || grpc_call_busy(member->join))
                return;
        if (grpc_call_send(member->join, member->orders[0].bytes, member->orders[0].size) < 0)
                return;
        free(member->orders[0].bytes);
        member->order_count--;
        memmove(&member->orders[0], &member->orders[1], member->order_count * sizeof(member->orders[0]));
}

static uint64_t give_order(struct member *member, struct rendezvous_order *order)
{
        struct waiting_order next;

        order->id = ++member->manager->last_order;
        next.bytes = member->join == NULL || member->order_count == ORDERS_MAX
                             ? NULL
                             : rendezvous_order_encode(order, &next.size);
        if (next.bytes == NULL)
                return 0;
        member->orders[member->order_count++] = next;
        send_next(member);
        return order->id;
}

static void forget_orders(struct member *member)
{
        for (size_t i = 0; i < member->order_count; i++)
                free(member->orders[i].bytes);
        member->order_count = 0;
}

/* --- the end
 * --------------------------------------------------------------------------------------------------------------
 */

static int on_farewell(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct manager *manager = userdata;

        (void) source;
        (void) usec;
        return sd_event_exit(manager->loop.event, manager->exit_code);
}

static void end(struct manager *manager, int exit_code)
{
        if (manager->ending)
                return;
        manager->ending = true;
        manager->exit_code = exit_code;
        if (manager->mpirun != 0)
                (void) kill(manager->mpirun, SIGTERM);
        for (size_t i = 0; i < manager->plan.group_count; i++) {
                struct rendezvous_order order = { .kind = ORDER_GO };

                (void) give_order(&manager->members[i], &order);
        }
        (void) sd_event_source_disable_unref(manager->deadline);
        manager->deadline = NULL;
        if (manager->mpirun == 0 &&
            sd_event_add_time_relative(manager->loop.event, &manager->deadline, CLOCK_MONOTONIC,
                                       FAREWELL_USEC, 0, on_farewell, manager) < 0)
                (void) sd_event_exit(manager->loop.event, exit_code);
}

/* --- mpirun
 * ------------------------------------------------------------------------------------------------------------------
 */

struct line {
        char *words[LINE_MAX_WORDS + 1];
        size_t count;
        bool failed;
};

static void word(struct line *line, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void word(struct line *line, const char *fmt, ...)
{
        va_list values;

        va_start(values, fmt);
        if (line->count == LINE_MAX_WORDS || vasprintf(&line->words[line->count], fmt, values) < 0)
                line->failed = true;
        else
                line->count++;
        va_end(values);
        line->words[line->count] = NULL;
}

static void mca(struct line *line, const char *name, const char *value)
{
        word(line, "--mca");
        word(line, "%s", name);
        word(line, "%s", value);
}

static void build_line(const struct manager *manager, struct line *line)
{
        char agent[PATH_MAX + 64];

        word(line, "mpirun");
        if (geteuid() == 0)
                word(line, "--allow-run-as-root");
        word(line, "--leave-session-attached");
        word(line, "--oversubscribe");
        word(line, "--bind-to");
        word(line, "none");
        /* Open MPI takes ':' in an agent's line for "or else": the address goes by the environment */
        (void) text_format(agent, sizeof(agent), "%s --start-on manager --", manager->self);
        mca(line, "plm", "rsh");
        mca(line, "plm_rsh_agent", agent);
        mca(line, "plm_rsh_no_tree_spawn", "1");
        mca(line, "ras", "^slurm,tm,gridengine,loadleveler,alps,lsf");
        mca(line, "pml", "ob1");
        mca(line, "btl", "self,vader,tcp");
        mca(line, "mpi_yield_when_idle", "1");
        for (size_t i = 0; i < manager->plan.group_count; i++) {
                const struct subtask_group *group = &manager->plan.groups[i];

                if (i > 0)
                        word(line, ":");
                word(line, "--host");
                word(line, "%s:%llu", group->name, (unsigned long long) group->chips);
                word(line, "-np");
                word(line, "%llu", (unsigned long long) group->chips);
                word(line, "%s", manager->self);
                word(line, "--runtime");
                word(line, "%s", group->runtime);
                word(line, "--die-with-parent");
                word(line, "--");
                for (size_t k = 0; k < json_array_size(manager->plan.args); k++)
                        word(line, "%s", json_string_value(json_array_get(manager->plan.args, k)));
        }
}

/* mpirun's start agents speak to this manager as its groups do. */
static int set_tls(const struct manager *manager, struct environment *environment)
{
        const struct tls_options *tls = &manager->options->tls;
        const char *const files[][2] = { { "REMUDA_LAUNCH_TLS_CERT", tls->certificate },
                                         { "REMUDA_LAUNCH_TLS_KEY", tls->key },
                                         { "REMUDA_LAUNCH_TLS_CA", tls->ca } };
        char absolute[PATH_MAX];
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
                if (files[i][1] != NULL)
                        r = realpath(files[i][1], absolute) == NULL
                                    ? -errno
                                    : environment_set(environment, files[i][0], absolute);
        if (r == 0 && tls->name != NULL)
                r = environment_set(environment, "REMUDA_LAUNCH_TLS_NAME", tls->name);
        return r;
}

static int run_environment(const struct manager *manager, struct environment *environment)
{
        int r = 0;

        for (char *const *variable = environ; r == 0 && *variable != NULL; variable++) {
                char name[256];
                const char *equals = strchr(*variable, '=');

                if (equals == NULL || (size_t) (equals - *variable) >= sizeof(name))
                        continue;
                memcpy(name, *variable, (size_t) (equals - *variable));
                name[equals - *variable] = '\0';
                r = environment_set(environment, name, equals + 1);
        }
        if (r == 0)
                r = set_tls(manager, environment);
        if (r == 0)
                r = environment_set(environment, "REMUDA_MANAGER", grpc_server_address(manager->server));
        if (r == 0)
                r = environment_set(environment, "REMUDA_LAUNCH_TOKEN_FILE", manager->token_file);
        if (r == 0)
                r = environment_set(environment, "TMPDIR", manager->folder);
        return r == 0 ? environment_set(environment, "PMIX_MCA_gds", "hash") : r;
}

static void start_mpirun(struct manager *manager)
{
        struct environment environment = { 0 };
        struct line *line = calloc(1, sizeof(*line));
        pid_t pid = -ENOMEM;

        (void) text_copy(manager->folder, sizeof(manager->folder), "/tmp/" SUPERVISE_FOLDER "XXXXXX");
        if (line != NULL && mkdtemp(manager->folder) != NULL && run_environment(manager, &environment) == 0) {
                build_line(manager, line);
                if (!line->failed)
                        pid = rendezvous_spawn(manager->mpirun_path, line->words, environment.variables, NULL,
                                               manager->folder);
        }
        for (size_t i = 0; line != NULL && i < line->count; i++)
                free(line->words[i]);
        free(line);
        environment_free(&environment);
        manager->started = true;
        if (pid < 0) {
                say("mpirun could not be started: %s", strerror((int) -pid));
                end(manager, EXIT_FAILED);
                return;
        }
        manager->mpirun = pid;
        say("all %zu groups are ready; mpirun starts %llu ranks", manager->plan.group_count,
            (unsigned long long) manager->plan.world_size);
}

/* --- the groups
 * ----------------------------------------------------------------------------------------------------------------
 */

static struct member *find_member(struct manager *manager, const char *name)
{
        for (size_t i = 0; i < manager->plan.group_count; i++)
                if (strcmp(manager->plan.groups[i].name, name) == 0)
                        return &manager->members[i];
        return NULL;
}

static void on_idle(void *userdata, struct grpc_call *call)
{
        (void) call;
        send_next(userdata);
}

static void on_left(void *userdata, struct grpc_call *call)
{
        struct member *member = userdata;
        struct manager *manager = member->manager;

        (void) call;
        member->join = NULL;
        member->ready = false;
        forget_orders(member);
        if (manager->ending)
                return;
        say("group %s is gone", member->plan->name);
        if (manager->started)
                end(manager, EXIT_FAILED);
}

/* Return: NULL, or why the group may not join, and the status in *status. */
static const char *refuse_join(struct manager *manager, const struct rendezvous_join *join,
                               struct member **ret, enum grpc_status *status)
{
        if (!rendezvous_token_matches(join->token, manager->token)) {
                *status = GRPC_UNAUTHENTICATED;
                return "the token is wrong; give the job's own with --token-file";
        }
        *status = GRPC_FAILED_PRECONDITION;
        if (join->version != RENDEZVOUS_VERSION)
                return "this manager speaks another version; install the same remuda-launch everywhere";
        *status = GRPC_NOT_FOUND;
        *ret = find_member(manager, join->group);
        if (*ret == NULL)
                return "the job has no group of this name";
        *status = GRPC_ALREADY_EXISTS;
        if ((*ret)->join != NULL)
                return "a group of this name has joined already";
        *status = GRPC_INVALID_ARGUMENT;
        if (strcmp(join->runtime, (*ret)->plan->runtime) != 0)
                return "the job plans another runtime for this group";
        if (join->chips < (*ret)->plan->chips)
                return "the job plans more chips for this group than it has";
        return NULL;
}

static void on_join(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct manager *manager = userdata;
        enum grpc_status status = GRPC_INVALID_ARGUMENT;
        struct rendezvous_order order = { .kind = ORDER_SUBTASK };
        struct rendezvous_join join;
        struct member *member = NULL;
        struct err err = { 0 };
        const char *why = rendezvous_join_decode(bytes, size_bytes, &join, &err) < 0
                                  ? err.msg
                                  : refuse_join(manager, &join, &member, &status);

        if (why != NULL) {
                say("a group was refused: %s", why);
                grpc_call_finish(call, status, why);
                return;
        }
        member->join = call;
        grpc_call_keep(call, on_idle, on_left, member);
        order.subtask = subtask_encode(&manager->plan, (size_t) (member - manager->members), manager->host,
                                       manager->port);
        member->subtask_order = order.subtask == NULL ? 0 : give_order(member, &order);
        free(order.subtask);
        say("group %s has joined with %u chips (%s)", join.group, join.chips, join.runtime);
}

static bool all_ready(const struct manager *manager)
{
        for (size_t i = 0; i < manager->plan.group_count; i++)
                if (!manager->members[i].ready)
                        return false;
        return true;
}

static void finish_start(struct member *member, int exit_code, const char *message)
{
        struct rendezvous_end what = { .exit_code = exit_code };
        struct grpc_call *call = TAKE(member->start);
        uint8_t *bytes;
        size_t size;

        if (call == NULL)
                return;
        (void) text_copy(what.message, sizeof(what.message), message);
        bytes = rendezvous_end_encode(&what, &size);
        if (bytes == NULL)
                grpc_call_finish(call, GRPC_INTERNAL, "no memory");
        else
                grpc_call_reply(call, bytes, size);
        free(bytes);
}

static void take_answer(struct manager *manager, struct member *member,
                        const struct rendezvous_answer *answer)
{
        if (answer->id == member->start_order && answer->id != 0) {
                member->start_order = 0;
                finish_start(member, answer->exit_code, answer->message);
        } else if (answer->id == member->subtask_order && answer->id != 0 && answer->exit_code != 0) {
                say("group %s refused its subtask: %s", member->plan->name, answer->message);
                end(manager, EXIT_FAILED);
        } else if (answer->id == member->subtask_order && answer->id != 0) {
                member->ready = true;
                if (!manager->started && all_ready(manager))
                        start_mpirun(manager);
        }
}

static void on_answer(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct manager *manager = userdata;
        struct rendezvous_answer answer;
        struct member *member;
        struct err err = { 0 };

        if (rendezvous_answer_decode(bytes, size_bytes, &answer, &err) < 0) {
                grpc_call_finish(call, GRPC_INVALID_ARGUMENT, err.msg);
                return;
        }
        member = find_member(manager, answer.group);
        if (!rendezvous_token_matches(answer.token, manager->token) || member == NULL ||
            member->join == NULL) {
                grpc_call_finish(call, GRPC_UNAUTHENTICATED,
                                 "the token is wrong, or the group has not joined");
                return;
        }
        grpc_call_reply(call, (const uint8_t *) "", 0);
        take_answer(manager, member, &answer);
}

/* --- mpirun's agents
 * --------------------------------------------------------------------------------------------------------------
 */

static void on_agent_gone(void *userdata, struct grpc_call *call)
{
        struct member *member = userdata;
        struct rendezvous_order order = { .kind = ORDER_STOP };

        (void) call;
        member->start = NULL;
        (void) give_order(member, &order);
}

static void on_start(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct manager *manager = userdata;
        struct rendezvous_order order = { .kind = ORDER_START };
        struct rendezvous_start start;
        struct member *member;
        struct err err = { 0 };

        if (rendezvous_start_decode(bytes, size_bytes, &start, &err) < 0) {
                grpc_call_finish(call, GRPC_INVALID_ARGUMENT, err.msg);
                return;
        }
        member = find_member(manager, start.host);
        if (!rendezvous_token_matches(start.token, manager->token)) {
                grpc_call_finish(call, GRPC_UNAUTHENTICATED, "the token is wrong");
        } else if (start.version != RENDEZVOUS_VERSION) {
                grpc_call_finish(call, GRPC_FAILED_PRECONDITION, "another version");
        } else if (member == NULL || member->join == NULL || member->start != NULL) {
                grpc_call_finish(call, GRPC_NOT_FOUND, "no such group, or it has a daemon already");
        } else {
                order.argv = start.argv;
                order.argc = start.argc;
                member->start = call;
                grpc_call_keep(call, NULL, on_agent_gone, member);
                member->start_order = give_order(member, &order);
                if (member->start_order == 0)
                        finish_start(member, EXIT_FAILED, "the group takes no more orders");
        }
        rendezvous_start_free(&start);
}

/* --- life
 * ---------------------------------------------------------------------------------------------------------------------------
 */

static const struct grpc_method methods[] = {
        { RENDEZVOUS_JOIN, on_join },
        { RENDEZVOUS_ANSWER, on_answer },
        { RENDEZVOUS_START, on_start },
        { NULL, NULL },
};

static void on_signal(void *userdata, int signal_number)
{
        struct manager *manager = userdata;
        int status;
        pid_t pid;

        if (signal_number != SIGCHLD) {
                end(manager, signal_number == SIGINT ? EXIT_INTERRUPTED : 128 + signal_number);
                return;
        }
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
                if (pid != manager->mpirun)
                        continue;
                manager->mpirun = 0;
                if (manager->ending) {
                        (void) on_farewell(NULL, 0, manager);
                        continue;
                }
                end(manager, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
        }
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct manager *manager = userdata;

        (void) source;
        (void) usec;
        for (size_t i = 0; !manager->started && i < manager->plan.group_count; i++)
                if (!manager->members[i].ready)
                        say("group %s did not come within %u seconds", manager->plan.groups[i].name,
                            manager->options->wait_seconds);
        if (!manager->started)
                end(manager, EXIT_TIMED_OUT);
        return 0;
}

static int read_plan(struct manager *manager, struct err *err)
{
        json_error_t error;
        json_t *value;
        int r;

        if (manager->options->plan == NULL)
                return err_set(err, -EINVAL, "--manage: no plan; give --plan FILE");
        value = json_load_file(manager->options->plan, JSON_REJECT_DUPLICATES, &error);
        if (value == NULL)
                return err_set(err, access(manager->options->plan, R_OK) < 0 ? -ENOENT : -EINVAL,
                               "--plan: '%.200s': line %d: %.160s", manager->options->plan, error.line,
                               error.text);
        r = subtask_plan_decode(value, &manager->plan, err);
        json_decref(value);
        if (r < 0)
                return err_wrap(err, r, "--plan: '%.200s'", manager->options->plan);
        manager->members = calloc(manager->plan.group_count, sizeof(*manager->members));
        for (size_t i = 0; manager->members != NULL && i < manager->plan.group_count; i++)
                manager->members[i] = (struct member){ .manager = manager, .plan = &manager->plan.groups[i] };
        return manager->members == NULL ? err_set(err, -ENOMEM, "no memory") : 0;
}

/* A port that was free a moment ago on this host, where rank 0 of other frameworks listens only if it runs
 * here. */
static unsigned free_port(void)
{
        struct sockaddr_in address = { .sin_family = AF_INET };
        CLEANUP(close_p) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t size = sizeof(address);

        if (fd < 0 || bind(fd, (const struct sockaddr *) &address, size) < 0 ||
            getsockname(fd, (struct sockaddr *) &address, &size) < 0)
                return 29500;
        return ntohs(address.sin_port);
}

static void on_refused(void *userdata, const char *why)
{
        struct manager *manager = userdata;

        if (strcmp(manager->last_refusal, why) != 0) /* once, however often it tries */
                say("a peer was refused: %s", why);
        (void) text_copy(manager->last_refusal, sizeof(manager->last_refusal), why);
}

static int open_manager(struct manager *manager, struct err *err)
{
        struct grpc_server_options server = { .address = manager->options->address,
                                              .methods = methods,
                                              .userdata = manager,
                                              .on_refused = on_refused,
                                              .connections_max = 2 * SUBTASK_GROUPS_MAX,
                                              .keepalive_usec = 5000000,
                                              .keepalive_timeout_usec = 10000000 };
        ssize_t size = readlink("/proc/self/exe", manager->self, sizeof(manager->self) - 1);
        int r = rendezvous_token(manager->options->token_file, manager->token, err);

        manager->self[size > 0 ? size : 0] = '\0';
        manager->port = free_port();
        if (r == 0)
                r = read_plan(manager, err);
        if (r == 0 && realpath(manager->options->token_file, manager->token_file) == NULL)
                r = err_set(err, -errno, "--token-file: '%.200s': %m", manager->options->token_file);
        if (r == 0 && strpbrk(manager->self, " \t:") != NULL)
                r = err_set(err, -EINVAL,
                            "mpirun takes no agent whose path holds a blank or a ':', as '%.200s' does",
                            manager->self);
        if (r == 0 &&
            rendezvous_find(manager->options->mpirun, manager->mpirun_path, sizeof(manager->mpirun_path)) < 0)
                r = err_set(err, -ENOENT, "'%.100s' is not in PATH; install Open MPI",
                            manager->options->mpirun);
        if (r == 0)
                r = tls_open(&manager->options->tls, manager->options->address, true, &manager->tls, err);
        server.wrap = manager->tls == NULL ? NULL : tls_wrap;
        server.wrap_userdata = manager->tls;
        if (r == 0)
                r = rendezvous_loop_open(&manager->loop, err);
        if (r == 0)
                r = grpc_server_new(manager->loop.event, &server, &manager->server, err);
        if (r == 0)
                r = sd_event_add_time_relative(manager->loop.event, &manager->deadline, CLOCK_MONOTONIC,
                                               manager->options->wait_seconds * 1000000ULL, 0, on_deadline,
                                               manager);
        if (r == 0) {
                (void) text_copy(manager->host, sizeof(manager->host), grpc_server_address(manager->server));
                *strrchr(manager->host, ':') = '\0';
                say("listening on %s for %zu groups", grpc_server_address(manager->server),
                    manager->plan.group_count);
        }
        return r;
}

int rendezvous_manage(const struct rendezvous_options *options)
{
        struct manager manager = { .options = options, .loop = { .signal_fd = -1, .on_signal = on_signal } };
        struct err err = { 0 };
        int r;

        manager.loop.userdata = &manager;
        r = open_manager(&manager, &err);
        if (r == 0)
                r = sd_event_loop(manager.loop.event);
        else
                say("%s", err.msg);
        manager.ending = true;
        grpc_server_free(manager.server);
        tls_close(manager.tls);
        for (size_t i = 0; manager.members != NULL && i < manager.plan.group_count; i++)
                forget_orders(&manager.members[i]);
        free(manager.members);
        subtask_plan_free(&manager.plan);
        (void) sd_event_source_disable_unref(manager.deadline);
        rendezvous_loop_close(&manager.loop);
        if (r < 0)
                return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_USAGE;
        return r;
}

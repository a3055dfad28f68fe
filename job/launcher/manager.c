/* The manager's life: its plan, its loop, what it does of each verdict, its end. */
#include "job/launcher/manager.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/launch/program_file.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/process.h"
#include "job/launcher/manager_members.h"
#include "job/launcher/manager_state.h"
#include "job/launcher/manager_world.h"
#include "job/spec/job.h"

#define TICK_USEC         250000
#define FAREWELL_USEC     500000 /* for the last orders to be read */
#define LISTEN_TRIES      50
#define LISTEN_PAUSE_MSEC 100

void manager_observe(struct manager *manager, struct world_fact fact)
{
        world_observe(&manager->world, &fact, clock_monotonic_usec());
}

static int on_farewell(sd_event_source *source, uint64_t usec, void *userdata)
{
        const struct manager *manager = userdata;

        (void) source;
        (void) usec;
        return sd_event_exit(manager->loop.event, manager->exit_code);
}

/* Whom the others waited for. */
static void say_missing(const struct manager *manager)
{
        for (size_t i = 0; i < manager->world.place_count; i++) {
                const struct world_place *place = &manager->world.places[i];
                bool sent = manager->world.rank_count > 0;

                if (sent ? place->used && !place->ready : !place->spare && !world_is_there(place))
                        manager_state_say(sent ? "group %s has joined and did not answer within %u seconds"
                                               : "group %s did not come within %u seconds",
                                          place->name, manager->options->wait_seconds);
        }
}

/* The job is over: the groups go, and this side once they have read it. */
static void end(struct manager *manager, const struct verdict *v)
{
        manager->ending = true;
        manager->end = v->end;
        manager->exit_code = v->exit_code;
        (void) text_copy(manager->reason, sizeof(manager->reason), v->reason);
        (void) text_copy(manager->message, sizeof(manager->message), v->message);
        if (v->exit_code == EXIT_TIMED_OUT && manager->world.worlds == 0)
                say_missing(manager);
        manager_state_write(manager);
        manager_state_write_result(manager);
        manager_world_kill(manager);
        manager_members_order_all(manager, RENDEZVOUS__ORDER__KIND__go,
                                  v->end == VERDICT_FAILED ? EXIT_FAILED : EXIT_DONE);
        (void) sd_event_source_set_time_relative(manager->farewell, FAREWELL_USEC);
        (void) sd_event_source_set_enabled(manager->farewell, SD_EVENT_ONESHOT);
}

static void execute(struct manager *manager, const struct verdict *v)
{
        if (v->reason[0] != '\0')
                manager_state_event(manager, v->reason, "%s", v->message);
        switch (v->kind) {
        case VERDICT_ASSIGN:
                manager_world_assign(manager);
                break;
        case VERDICT_START:
                manager_world_start(manager);
                break;
        case VERDICT_TERMINATE:
                manager_members_order_all(manager, RENDEZVOUS__ORDER__KIND__terminate, 0);
                break;
        case VERDICT_RESHARD:
                manager_world_adopt(manager);
                __attribute__((fallthrough));
        case VERDICT_RESTART:
                manager_world_kill(manager);
                manager_members_stop(manager);
                break;
        case VERDICT_END:
                end(manager, v);
                break;
        case VERDICT_GO_ON:
        case VERDICT_SAY:
        case VERDICT_MOVE: /* who takes part is in the world, which manager_world_assign() reads */
        case VERDICT_LEAVE_OUT:
                break;
        }
}

/* What is done may have consequences at once, such as a connection that ends: they are judged in this loop.
 */
void manager_judge(struct manager *manager)
{
        struct verdict v;

        if (manager->judging)
                return;
        manager->judging = true;
        while (!manager->ending &&
               (v = verdict_on(&manager->world, clock_monotonic_usec())).kind != VERDICT_GO_ON)
                execute(manager, &v);
        manager->judging = false;
}

void manager_fail(struct manager *manager, int exit_code, const char *reason, const char *fmt, ...)
{
        struct verdict v = { .kind = VERDICT_END, .end = VERDICT_FAILED, .exit_code = exit_code };
        va_list values;

        if (manager->ending)
                return;
        (void) text_copy(v.reason, sizeof(v.reason), reason);
        va_start(values, fmt);
        (void) vsnprintf(v.message, sizeof(v.message), fmt, values); /* cut to its field */
        va_end(values);
        execute(manager, &v);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct manager *manager = userdata;

        (void) usec;
        manager_judge(manager);
        if (!manager->ending)
                manager_state_write(manager);
        (void) sd_event_source_set_time_relative(source, TICK_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void on_signal(void *userdata, int signal_number)
{
        struct manager *manager = userdata;
        int status;
        pid_t pid;

        if (signal_number != SIGCHLD)
                manager_observe(manager, (struct world_fact){ .kind = WORLD_CANCEL, .code = signal_number });
        while (signal_number == SIGCHLD && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
                if (pid != manager->mpirun)
                        continue;
                manager->mpirun = 0;
                manager_observe(manager, (struct world_fact){ .kind = WORLD_MPIRUN,
                                                              .code = process_exit_code(status) });
        }
        manager_judge(manager);
}

/* Every group of the plan is a place; workers, and servers, stand for each other. */
static int open_world(struct manager *manager, struct err *err)
{
        const Subtask__Plan *plan = manager->plan;
        const Subtask__Restart *restart = plan->restart;
        uint64_t steps = (plan->samples + plan->global_batch - 1) / plan->global_batch * plan->epochs;
        const struct world_rules rules = { .kind = WORLD_GROUPS,
                                           .restart_max = restart->max,
                                           .hang_usec = restart->hang_seconds * 1000000ULL,
                                           .grace_usec = manager->options->grace_seconds * 1000000ULL,
                                           .wait_usec = manager->options->wait_seconds * 1000000ULL,
                                           .patience_usec = restart->rejoin_seconds * 1000000ULL,
                                           .global_batch = plan->global_batch,
                                           .last_step = steps > 1 ? steps - 1 : 0,
                                           /* who sets a limit of his own says that his program reports */
                                           .speaks = restart->hang_seconds != JOB_HANG_SECONDS,
                                           .recut = subtask_may_share_anew(plan),
                                           .migrate = true,
                                           .checkpoints = plan->n_resume_args > 0,
                                           .log = "its words are above",
                                           .address = manager->address };
        int r = world_init(&manager->world, &rules, plan->n_groups, clock_monotonic_usec(), err);

        for (size_t i = 0; r == 0 && i < plan->n_groups; i++) {
                const Subtask__Group *group = plan->groups[i];
                struct world_place *place = &manager->world.places[i];

                (void) text_copy(place->name, sizeof(place->name), group->name);
                (void) text_copy(place->runtime, sizeof(place->runtime), group->runtime);
                place->server = subtask_is_server(group);
                place->spare = group->spare;
                place->chips = group->chips;
                place->role = place->server;
                place->role_min = restart->min_chips;
        }
        manager->world.restarts = plan->restarts;
        manager->world.checkpoint = plan->n_resume_args > 0;
        return r;
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
        pb_arena_init(&manager->plan_arena, SUBTASK_ARENA_BYTES);
        r = subtask_read(value, &manager->plan_arena, &manager->plan, err);
        json_decref(value);
        if (r < 0)
                return err_wrap(err, r, "--plan: '%.200s'", manager->options->plan);
        manager->members = calloc(manager->plan->n_groups, sizeof(*manager->members));
        if (manager->members == NULL)
                return err_set(err, -ENOMEM, "no memory");
        for (size_t i = 0; i < manager->plan->n_groups; i++)
                manager->members[i] =
                        (struct manager_member){ .manager = manager, .plan = manager->plan->groups[i] };
        return open_world(manager, err);
}

static void on_refused(void *userdata, const char *why)
{
        struct manager *manager = userdata;

        if (strcmp(manager->last_refusal, why) != 0) /* once, however often it tries */
                manager_state_say("a peer was refused: %s", why);
        (void) text_copy(manager->last_refusal, sizeof(manager->last_refusal), why);
}

/* "0.0.0.0:7000" is no address that others could be told: the first of this host that is not the loopback's.
 */
static void find_address(struct manager *manager)
{
        const char *listening = grpc_server_address(manager->server), *port = strrchr(listening, ':');
        struct ifaddrs *all = NULL;
        char host[64] = "";

        if (manager->options->advertise != NULL)
                (void) text_copy(host, sizeof(host), manager->options->advertise);
        else if (text_starts_with(listening, "0.0.0.0:") && getifaddrs(&all) == 0)
                for (const struct ifaddrs *at = all; at != NULL && host[0] == '\0'; at = at->ifa_next)
                        if (at->ifa_addr != NULL && at->ifa_addr->sa_family == AF_INET &&
                            ntohl(((const struct sockaddr_in *) (const void *) at->ifa_addr)
                                          ->sin_addr.s_addr) >>
                                            24 !=
                                    127)
                                (void) inet_ntop(
                                        AF_INET,
                                        &((const struct sockaddr_in *) (const void *) at->ifa_addr)->sin_addr,
                                        host, sizeof(host));
        if (all != NULL)
                freeifaddrs(all);
        if (host[0] == '\0')
                (void) text_copy(manager->address, sizeof(manager->address), listening);
        else
                (void) text_format(manager->address, sizeof(manager->address),
                                   strchr(host, ':') == NULL ? "%s%s" : "[%s]%s", host, port);
}

static int open_files(struct manager *manager, struct err *err)
{
        ssize_t size = readlink("/proc/self/exe", manager->self, sizeof(manager->self) - 1);
        int r = rendezvous_token(manager->options->token_file, manager->token, err);

        manager->self[size > 0 ? size : 0] = '\0';
        if (r == 0)
                r = read_plan(manager, err);
        if (r == 0 && realpath(manager->options->token_file, manager->token_file) == NULL)
                r = err_set(err, -errno, "--token-file: '%.200s': %m", manager->options->token_file);
        if (r == 0 && strpbrk(manager->self, " \t:") != NULL)
                r = err_set(err, -EINVAL,
                            "mpirun takes no agent whose path holds a blank or a ':', as '%.200s' does",
                            manager->self);
        if (r == 0 && program_file_find(manager->options->mpirun, manager->mpirun_path,
                                        sizeof(manager->mpirun_path)) < 0)
                r = err_set(err, -ENOENT, "'%.100s' is not in PATH; install Open MPI",
                            manager->options->mpirun);
        return r;
}

/* An outgoing connection of this host may have the port for a moment. A signal ends the waiting. */
static int listen_in_time(struct manager *manager, const struct grpc_server_options *server, struct err *err)
{
        struct pollfd signals = { .fd = manager->loop.signal_fd, .events = POLLIN };
        int r = grpc_server_new(manager->loop.event, server, &manager->server, err);

        if (r == -EADDRINUSE)
                manager_state_say("%s; trying again for %u s", err->msg,
                                  LISTEN_TRIES * LISTEN_PAUSE_MSEC / 1000);
        for (unsigned i = 0; r == -EADDRINUSE && i < LISTEN_TRIES; i++) {
                if (poll(&signals, 1, LISTEN_PAUSE_MSEC) > 0)
                        break;
                r = grpc_server_new(manager->loop.event, server, &manager->server, err);
        }
        return r == -EADDRINUSE
                       ? err_set(err, r,
                                 "listen on '%.100s': another program has this port; choose another one",
                                 manager->options->address)
                       : r;
}

static int open_server(struct manager *manager, struct err *err)
{
        const char *advertised = manager->options->advertise;
        struct grpc_server_options server = { .address = manager->options->address,
                                              .methods = manager_members_methods,
                                              .userdata = manager,
                                              .on_refused = on_refused,
                                              .connections_max = 2 * SUBTASK_GROUPS_MAX,
                                              .keepalive_usec = MANAGER_KEEPALIVE_USEC,
                                              .keepalive_timeout_usec = MANAGER_KEEPALIVE_TIMEOUT_USEC };
        int r = keys_open(&manager->options->tls, advertised == NULL ? manager->options->address : advertised,
                          true, &manager->tls, err);

        server.wrap = manager->tls == NULL ? NULL : tls_wrap;
        server.wrap_userdata = manager->tls;
        if (r == 0)
                r = rendezvous_loop_open(&manager->loop, err);
        if (r == 0)
                r = sd_event_add_time_relative(manager->loop.event, &manager->farewell, CLOCK_MONOTONIC, 0, 0,
                                               on_farewell, manager);
        if (r >= 0)
                r = sd_event_source_set_enabled(manager->farewell, SD_EVENT_OFF);
        if (r == 0)
                r = sd_event_add_time_relative(manager->loop.event, &manager->tick, CLOCK_MONOTONIC,
                                               TICK_USEC, 0, on_tick, manager);
        return r < 0 ? r : listen_in_time(manager, &server, err);
}

static void close_manager(struct manager *manager)
{
        manager->ending = true;
        grpc_server_free(manager->server);
        tls_free(manager->tls);
        manager_members_free(manager);
        world_free(&manager->world);
        free(manager->lines);
        json_decref(manager->events);
        pb_arena_free(&manager->plan_arena);
        (void) sd_event_source_disable_unref(manager->farewell);
        (void) sd_event_source_disable_unref(manager->tick);
        rendezvous_loop_close(&manager->loop);
}

int manager_run(const struct rendezvous_options *options)
{
        struct manager manager = { .options = options,
                                   .loop = { .signal_fd = -1, .on_signal = on_signal },
                                   .began_usec = clock_monotonic_usec(),
                                   .events = json_array() };
        struct err err = { 0 };
        int r;

        manager.loop.userdata = &manager;
        r = open_files(&manager, &err);
        if (r == 0)
                r = open_server(&manager, &err);
        if (r == 0) {
                find_address(&manager);
                manager_state_say("listening on %s for %zu groups", grpc_server_address(manager.server),
                                  manager.plan->n_groups);
                r = sd_event_loop(manager.loop.event);
        } else {
                manager_state_say("%s", err.msg);
        }
        close_manager(&manager);
        if (r < 0)
                return r == -ENOENT ? EXIT_NOT_FOUND : r == -EACCES ? EXIT_NO_PERMISSION : EXIT_USAGE;
        return r;
}

/* The manager's life: its plan, its hands, its end. */
#include "job/launcher/manager.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/launch/program_file.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "io/clock.h"
#include "job/launcher/manager_members.h"
#include "job/launcher/manager_state.h"
#include "job/launcher/manager_world.h"
#include "job/spec/job.h"

#define TICK_USEC         250000
#define FAREWELL_USEC     500000 /* for the last orders to be read */
#define LISTEN_TRIES      50
#define LISTEN_PAUSE_MSEC 100

/* Whom the others waited for. */
static void say_missing(const struct manager *manager)
{
        for (size_t i = 0; i < manager->world.place_count; i++) {
                const struct world_place *place = &manager->world.places[i];
                bool sent = manager->world.rank_count > 0;

                if (sent ? place->used && !place->ready : !place->spare && !world_is_there(place))
                        log_say(manager->options->log, LOG_WARNING, "manager",
                                sent ? "group %s has joined and did not answer within %u seconds"
                                     : "group %s did not come within %u seconds",
                                place->name, manager->options->wait_seconds);
        }
}

static void on_event(void *userdata, const char *reason, const char *message)
{
        manager_state_event(userdata, reason, "%s", message);
}

static void terminate(void *userdata)
{
        manager_members_order_all(userdata, RENDEZVOUS__ORDER__KIND__terminate, 0);
}

/* The job is over: the groups go, and this side once they have read it. */
static void end(void *userdata, const struct verdict *v)
{
        struct manager *manager = userdata;

        manager_state_event(manager, v->reason, "%s", v->message);
        if (v->exit_code == EXIT_TIMED_OUT && manager->world.worlds == 0)
                say_missing(manager);
        manager_state_write(manager);
        manager_state_write_result(manager);
        manager_members_order_all(manager, RENDEZVOUS__ORDER__KIND__go,
                                  v->end == VERDICT_FAILED ? EXIT_FAILED : EXIT_DONE);
}

/* What a job allows may change while it runs: the plan's file has it then, of which nothing else is read
 * again. */
static void take_limit(struct manager *manager)
{
        json_t *value = json_load_file(manager->options->plan, JSON_REJECT_DUPLICATES, NULL);
        Subtask__Plan *plan = NULL;
        struct pb_arena arena;

        pb_arena_init(&arena, SUBTASK_ARENA_BYTES);
        if (value != NULL && subtask_read(value, &arena, &plan, NULL) == 0 &&
            plan->restart->max != manager->plan->restart->max) {
                manager->plan->restart->max = plan->restart->max; /* ranks are told, too */
                manager->world.rules.restart_max = plan->restart->max;
                manager_state_event(manager, "RestartsAllowed", "%u restarts are allowed, of which %llu were",
                                    plan->restart->max, (unsigned long long) manager->world.restarts);
        }
        pb_arena_free(&arena);
        json_decref(value);
}

static void look(void *userdata)
{
        struct manager *manager = userdata;
        struct stat now;

        if (stat(manager->options->plan, &now) < 0 ||
            (now.st_ino == manager->plan_file.st_ino &&
             now.st_mtim.tv_sec == manager->plan_file.st_mtim.tv_sec &&
             now.st_mtim.tv_nsec == manager->plan_file.st_mtim.tv_nsec))
                return;
        manager->plan_file = now;
        take_limit(manager);
}

/* Who takes part is in the world, which manager_world_assign() reads. */
static const struct engine_hands hands = { .tick_usec = TICK_USEC,
                                           .farewell_usec = FAREWELL_USEC,
                                           .look = look,
                                           .tell = manager_state_write,
                                           .event = on_event,
                                           .assign = manager_world_assign,
                                           .start = manager_world_start,
                                           .terminate = terminate,
                                           .adopt = manager_world_adopt,
                                           .share = manager_world_share,
                                           .shared = manager_world_shared,
                                           .stop = manager_members_stop,
                                           .end = end };

/* Every group of the plan is a place; workers, and servers, stand for each other. */
static int open_world(struct manager *manager, struct err *err)
{
        const Subtask__Plan *plan = manager->plan;
        const Subtask__Restart *restart = plan->restart;
        const struct world_rules rules = { .kind = WORLD_GROUPS,
                                           .restart_max = restart->max,
                                           .hang_usec = restart->hang_seconds * 1000000ULL,
                                           .grace_usec = manager->options->grace_seconds * 1000000ULL,
                                           .wait_usec = manager->options->wait_seconds * 1000000ULL,
                                           .patience_usec = restart->rejoin_seconds * 1000000ULL,
                                           .global_batch = plan->global_batch,
                                           .last_step = progress_last_step(plan->samples, plan->global_batch,
                                                                           plan->epochs),
                                           /* who sets a limit of his own says that his program reports */
                                           .speaks = restart->hang_seconds != JOB_HANG_SECONDS,
                                           .recut = subtask_may_share_anew(plan),
                                           .staged = plan->staged,
                                           /* who goes on by --resume is the trainer */
                                           .resplit = plan->n_resume_args > 0 && restart->resplit,
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
        manager->world.launcher_crashes = plan->launcher_crashes;
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
                log_say(manager->options->log, LOG_WARNING, "manager", "a peer was refused: %s", why);
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
        if (r == 0 && !proof_nonce(manager->nonces))
                r = err_set(err, -EIO, "getrandom: %m");
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
        struct pollfd signals = { .fd = manager->engine.loop.signal_fd, .events = POLLIN };
        int r = grpc_server_new(manager->engine.loop.event, server, &manager->server, err);

        if (r == -EADDRINUSE)
                log_say(manager->options->log, LOG_WARNING, "manager", "%s; trying again for %u s", err->msg,
                        LISTEN_TRIES * LISTEN_PAUSE_MSEC / 1000);
        for (unsigned i = 0; r == -EADDRINUSE && i < LISTEN_TRIES; i++) {
                if (poll(&signals, 1, LISTEN_PAUSE_MSEC) > 0)
                        break;
                r = grpc_server_new(manager->engine.loop.event, server, &manager->server, err);
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
                r = engine_open(&manager->engine, err);
        return r < 0 ? r : listen_in_time(manager, &server, err);
}

static void close_manager(struct manager *manager)
{
        manager->engine.ending = true;
        grpc_server_free(manager->server);
        tls_free(manager->tls);
        manager_members_free(manager);
        world_free(&manager->world);
        stage_ranks_free(&manager->split);
        json_decref(manager->events);
        pb_arena_free(&manager->plan_arena);
        engine_close(&manager->engine);
}

int manager_run(const struct rendezvous_options *options)
{
        struct manager manager = { .options = options,
                                   .engine = { .hands = &hands, .loop.signal_fd = -1 },
                                   .events = json_array() };
        struct err err = { 0 };
        int r;

        manager.engine.userdata = &manager;
        manager.engine.world = &manager.world;
        r = open_files(&manager, &err);
        if (r == 0)
                r = open_server(&manager, &err);
        if (r == 0) {
                find_address(&manager);
                log_say(options->log, LOG_INFO, "manager", "listening on %s for %zu groups",
                        grpc_server_address(manager.server), manager.plan->n_groups);
                r = engine_run(&manager.engine);
        } else {
                log_say(options->log, LOG_ERR, "manager", "%s", err.msg);
        }
        close_manager(&manager);
        if (r < 0)
                return r == -ENOENT ? EXIT_NOT_FOUND : r == -EACCES ? EXIT_NO_PERMISSION : EXIT_USAGE;
        return manager.engine.last.exit_code;
}

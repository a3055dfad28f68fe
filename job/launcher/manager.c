/* The manager's life: its files, its loop, its end. */
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
#include "job/launcher/manager.h"

#define TICK_USEC         250000
#define LISTEN_TRIES      50
#define LISTEN_PAUSE_MSEC 100

uint64_t manager_now_usec(void)
{
        return clock_monotonic_usec();
}

void manager_say(const char *fmt, ...)
{
        va_list values;

        va_start(values, fmt);
        (void) fputs("remuda-launch: manager: ", stderr);
        (void) vfprintf(stderr, fmt, values);
        (void) fputc('\n', stderr);
        va_end(values);
}

/* --- time
 * ---------------------------------------------------------------------------------------------------------------
 */

static int on_farewell(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct manager *manager = userdata;

        (void) source;
        (void) usec;
        return sd_event_exit(manager->loop.event, manager->exit_code);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct manager *manager = userdata;

        (void) source;
        if (manager->ending)
                return on_farewell(NULL, usec, manager);
        manager_on_deadline(manager);
        return 0;
}

void manager_set_deadline(struct manager *manager, uint64_t after_usec)
{
        (void) sd_event_source_set_time_relative(manager->deadline, after_usec);
        (void) sd_event_source_set_enabled(manager->deadline,
                                           after_usec == 0 ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct manager *manager = userdata;

        (void) usec;
        if (manager->state == MANAGER_RUNNING)
                manager_judge(manager);
        if (!manager->ending)
                manager_write_status(manager);
        (void) sd_event_source_set_time_relative(source, TICK_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* --- the end
 * ------------------------------------------------------------------------------------------------------------
 */

void manager_end(struct manager *manager, enum manager_state state, int exit_code, const char *reason,
                 const char *fmt, ...)
{
        va_list values;

        if (manager->ending)
                return;
        manager->ending = true;
        manager->state = state;
        manager->exit_code = exit_code;
        (void) text_copy(manager->reason, sizeof(manager->reason), reason);
        va_start(values, fmt);
        (void) vsnprintf(manager->message, sizeof(manager->message), fmt,
                         values); /* NOLINT: cut to its field */
        va_end(values);
        manager_event(manager, reason, "%s", manager->message);
        manager_write_status(manager);
        manager_write_result(manager);
        manager_kill_mpirun(manager);
        manager_order_all(manager, ORDER_GO, state == MANAGER_FAILED ? EXIT_FAILED : EXIT_DONE);
        manager_set_deadline(manager, FAREWELL_USEC);
}

/* The ranks may write a checkpoint before they go. */
static void cancel(struct manager *manager, int signal_number)
{
        int exit_code = signal_number == SIGINT ? EXIT_INTERRUPTED : 128 + signal_number;

        if (manager->state == MANAGER_RUNNING && !manager->evicting) {
                manager->evicting = manager->cancelled = true;
                manager->fault.exit_code = exit_code;
                manager_event(manager, "Cancelling", "the ranks have %u s for a checkpoint",
                              manager->options->grace_seconds);
                manager_order_all(manager, ORDER_TERMINATE, 0);
                manager_set_deadline(manager, manager->options->grace_seconds * 1000000ULL);
        } else {
                manager_end(manager, MANAGER_CANCELLED, exit_code, "Interrupted", "cancelled by a signal");
        }
}

static void on_signal(void *userdata, int signal_number)
{
        struct manager *manager = userdata;
        int status;
        pid_t pid;

        if (signal_number != SIGCHLD) {
                cancel(manager, signal_number);
                return;
        }
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
                if (pid != manager->mpirun)
                        continue;
                manager->mpirun = 0;
                if (!manager->ending)
                        manager_on_mpirun_end(manager, WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                                                           : WEXITSTATUS(status));
        }
}

/* --- the beginning
 * ------------------------------------------------------------------------------------------------------ */

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
        for (size_t i = 0; manager->members != NULL && i < manager->plan->n_groups; i++)
                manager->members[i] = (struct member){ .manager = manager, .plan = manager->plan->groups[i] };
        return manager->members == NULL ? err_set(err, -ENOMEM, "no memory") : 0;
}

static void on_refused(void *userdata, const char *why)
{
        struct manager *manager = userdata;

        if (strcmp(manager->last_refusal, why) != 0) /* once, however often it tries */
                manager_say("a peer was refused: %s", why);
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
                manager_say("%s; trying again for %u s", err->msg, LISTEN_TRIES * LISTEN_PAUSE_MSEC / 1000);
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
                                              .methods = manager_methods,
                                              .userdata = manager,
                                              .on_refused = on_refused,
                                              .connections_max = 2 * SUBTASK_GROUPS_MAX,
                                              .keepalive_usec = MANAGER_KEEPALIVE_USEC,
                                              .keepalive_timeout_usec = MANAGER_KEEPALIVE_TIMEOUT_USEC };
        int r = tls_open(&manager->options->tls, advertised == NULL ? manager->options->address : advertised,
                         true, &manager->tls, err);

        server.wrap = manager->tls == NULL ? NULL : tls_wrap;
        server.wrap_userdata = manager->tls;
        if (r == 0)
                r = rendezvous_loop_open(&manager->loop, err);
        if (r == 0)
                r = sd_event_add_time_relative(manager->loop.event, &manager->deadline, CLOCK_MONOTONIC,
                                               manager->options->wait_seconds * 1000000ULL, 0, on_deadline,
                                               manager);
        if (r == 0)
                r = sd_event_add_time_relative(manager->loop.event, &manager->tick, CLOCK_MONOTONIC,
                                               TICK_USEC, 0, on_tick, manager);
        return r < 0 ? r : listen_in_time(manager, &server, err);
}

static void close_manager(struct manager *manager)
{
        manager->ending = true;
        grpc_server_free(manager->server);
        tls_close(manager->tls);
        for (size_t i = 0; manager->members != NULL && i < manager->plan->n_groups; i++)
                member_forget_orders(&manager->members[i]);
        free(manager->members);
        free(manager->ranks);
        free(manager->judged);
        json_decref(manager->events);
        pb_arena_free(&manager->plan_arena);
        (void) sd_event_source_disable_unref(manager->deadline);
        (void) sd_event_source_disable_unref(manager->tick);
        rendezvous_loop_close(&manager->loop);
}

int rendezvous_manage(const struct rendezvous_options *options)
{
        struct manager manager = { .options = options,
                                   .loop = { .signal_fd = -1, .on_signal = on_signal },
                                   .began_usec = manager_now_usec(),
                                   .events = json_array() };
        struct err err = { 0 };
        int r;

        manager.loop.userdata = &manager;
        r = open_files(&manager, &err);
        if (r == 0)
                r = open_server(&manager, &err);
        if (r == 0) {
                find_address(&manager);
                manager_say("listening on %s for %zu groups", grpc_server_address(manager.server),
                            manager.plan->n_groups);
                r = sd_event_loop(manager.loop.event);
        } else {
                manager_say("%s", err.msg);
        }
        close_manager(&manager);
        if (r < 0)
                return r == -ENOENT ? EXIT_NOT_FOUND : r == -EACCES ? EXIT_NO_PERMISSION : EXIT_USAGE;
        return r;
}

/* The launcher of one device group: joins the manager, takes its subtask, cuts it over its chips, and runs
 * mpirun's daemon here when the manager asks. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/exit_code.h"
#include "core/text.h"
#include "io/grpc_client.h"
#include "launcher/environment.h"
#include "launcher/rendezvous.h"
#include "launcher/subtask.h"
#include "launcher/supervise.h"

#define RETRY_USEC  200000
#define GROUP_BYTES 1024

struct group {
        const struct rendezvous_options *options;
        struct rendezvous_loop loop;
        struct tls *tls;
        struct grpc_client *client;
        struct grpc_client_call *join;
        sd_event_source *retry;
        char token[RENDEZVOUS_TOKEN_BYTES];
        char work[GROUP_BYTES], rank_file[GROUP_BYTES + 64], programs[GROUP_BYTES], folder[64];
        unsigned tries;
        bool joined;
        pid_t daemon; /* the supervisor of orted; 0 = none */
        uint64_t daemon_order;
        int exit_code;
};

static void say(const struct group *group, const char *sentence)
{
        (void) fprintf(stderr, "remuda-launch: group %s: %s\n", group->options->group, sentence);
}

/* --- answers
 * ----------------------------------------------------------------------------------------------------------
 */

static void on_answered(void *userdata, enum grpc_status status, const char *sentence)
{
        if (status != GRPC_OK)
                say(userdata, sentence == NULL ? "the manager took no answer" : sentence);
}

static void answer(struct group *group, uint64_t id, int exit_code, const char *message)
{
        const struct grpc_client_handlers handlers = { .on_done = on_answered, .userdata = group };
        struct rendezvous_answer what = { .id = id, .exit_code = exit_code };
        uint8_t *bytes;
        size_t size;

        (void) text_copy(what.token, sizeof(what.token), group->token);
        (void) text_copy(what.group, sizeof(what.group), group->options->group);
        (void) text_copy(what.message, sizeof(what.message), message);
        bytes = rendezvous_answer_encode(&what, &size);
        if (bytes != NULL)
                (void) grpc_client_call(group->client, RENDEZVOUS_ANSWER, bytes, size, 10000000, &handlers,
                                        NULL);
        free(bytes);
}

/* --- orders
 * -------------------------------------------------------------------------------------------------------------
 */

static void take_subtask(struct group *group, const struct rendezvous_order *order)
{
        json_t *ranks = NULL;
        struct err err = { 0 };
        int r = subtask_cut(order->subtask == NULL ? "" : order->subtask, group->work, &ranks, &err);

        if (r == 0 && json_dump_file(ranks, group->rank_file, JSON_INDENT(1)) < 0)
                r = err_set(&err, -EIO, "'%.200s' cannot be written", group->rank_file);
        json_decref(ranks);
        say(group, r < 0 ? err.msg : "has its subtask");
        answer(group, order->id, r < 0 ? EXIT_USAGE : 0, r < 0 ? err.msg : "");
}

/* mpirun quotes for a shell; there is none here. " orted" and "\"env\"" become orted and env. */
static char *plain_word(char *word)
{
        size_t length;

        while (*word == ' ')
                word++;
        length = strlen(word);
        if (length >= 2 && word[0] == '"' && word[length - 1] == '"') {
                word[length - 1] = '\0';
                word++;
        }
        return word;
}

static int daemon_environment(const struct group *group, struct environment *environment)
{
        int r = 0;

        for (char *const *variable = environ; r == 0 && *variable != NULL; variable++) {
                const char *equals = strchr(*variable, '=');
                char name[256];

                if (equals == NULL || (size_t) (equals - *variable) >= sizeof(name))
                        continue;
                memcpy(name, *variable, (size_t) (equals - *variable));
                name[equals - *variable] = '\0';
                if (!text_starts_with(name, "OMPI_") && !text_starts_with(name, "PMIX_"))
                        r = environment_set(environment, name, equals + 1);
        }
        if (r == 0)
                r = environment_set(environment, "TMPDIR", group->folder);
        if (r == 0)
                r = environment_set(environment, "PMIX_MCA_gds", "hash");
        if (r == 0) /* the group's own table and subtask, whatever the manager's command line says */
                r = environment_set(environment, "REMUDA_LAUNCH_PROGRAMS", group->programs);
        if (r == 0)
                r = environment_set(environment, "REMUDA_LAUNCH_RANK_FILE", group->rank_file);
        if (r == 0)
                r = environment_set(environment, "OMPI_MCA_btl_vader_backing_directory", group->folder);
        return r;
}

static int start_daemon(struct group *group, struct rendezvous_order *order, struct err *err)
{
        struct environment environment = { 0 };
        char path[PATH_MAX], log[GROUP_BYTES + 64];
        const char *name;
        int r = 0;

        for (size_t i = 0; i < order->argc; i++) {
                const char *plain = plain_word(order->argv[i]);

                memmove(order->argv[i], plain, strlen(plain) + 1);
        }
        name = order->argc == 0 ? "" : strrchr(order->argv[0], '/');
        name = name == NULL ? order->argv[0] : name;
        if (group->daemon != 0)
                return err_set(err, -EBUSY, "a daemon is running here already");
        if (strcmp(name[0] == '/' ? name + 1 : name, "orted") != 0)
                return err_set(err, -EPERM, "'%.80s' is not orted, and nothing else is started here", name);
        if (rendezvous_find("orted", path, sizeof(path)) < 0)
                return err_set(err, -ENOENT, "orted is not in PATH; install Open MPI on this host");
        (void) text_copy(group->folder, sizeof(group->folder), "/tmp/" SUPERVISE_FOLDER "XXXXXX");
        if (mkdtemp(group->folder) == NULL)
                return err_set(err, -errno, "no folder below /tmp: %m");
        r = daemon_environment(group, &environment);
        (void) text_format(log, sizeof(log), "%s/orted.log", group->work);
        if (r == 0) {
                group->daemon =
                        rendezvous_spawn(path, order->argv, environment.variables, log, group->folder);
                r = group->daemon < 0 ? (int) group->daemon : 0;
        }
        environment_free(&environment);
        group->daemon_order = order->id;
        if (r < 0)
                group->daemon = 0;
        return r < 0 ? err_set(err, r, "orted could not be started: %s", strerror(-r)) : 0;
}

static void leave(struct group *group, int exit_code)
{
        group->exit_code = exit_code;
        if (group->daemon == 0)
                (void) sd_event_exit(group->loop.event, exit_code);
        else
                (void) kill(group->daemon, SIGTERM); /* its end ends us */
        group->daemon_order = 0;
}

static void on_order(void *userdata, const uint8_t *message, size_t size_bytes)
{
        struct group *group = userdata;
        struct rendezvous_order order;
        struct err err = { 0 };

        group->joined = true;
        if (rendezvous_order_decode(message, size_bytes, &order, &err) < 0) {
                say(group, err.msg);
                return;
        }
        switch (order.kind) {
        case ORDER_SUBTASK:
                take_subtask(group, &order);
                break;
        case ORDER_START:
                if (start_daemon(group, &order, &err) < 0)
                        answer(group, order.id, EXIT_FAILED, err.msg);
                break;
        case ORDER_STOP:
                if (group->daemon != 0)
                        (void) kill(group->daemon, SIGTERM);
                break;
        case ORDER_GO:
                leave(group, EXIT_DONE);
                break;
        }
        rendezvous_order_free(&order);
}

/* --- joining
 * -------------------------------------------------------------------------------------------------------------
 */

static void join_manager(struct group *group);

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void) source;
        (void) usec;
        join_manager(userdata);
        return 0;
}

static void on_left(void *userdata, enum grpc_status status, const char *sentence)
{
        struct group *group = userdata;

        group->join = NULL;
        if (status == GRPC_UNAVAILABLE && !group->joined &&
            group->tries * RETRY_USEC < group->options->wait_seconds * 1000000ULL) {
                (void) sd_event_source_set_time_relative(group->retry, RETRY_USEC);
                (void) sd_event_source_set_enabled(group->retry, SD_EVENT_ONESHOT);
                return;
        }
        if (group->daemon_order != 0 || !group->joined || status != GRPC_OK)
                say(group, sentence == NULL || sentence[0] == '\0' ? "the manager is gone" : sentence);
        leave(group, group->joined                ? EXIT_FAILED
                     : status == GRPC_UNAVAILABLE ? EXIT_API_UNREACHABLE
                                                  : EXIT_USAGE);
}

static void join_manager(struct group *group)
{
        const struct grpc_client_handlers handlers = { .on_message = on_order,
                                                       .on_done = on_left,
                                                       .userdata = group };
        struct rendezvous_join join = { .version = RENDEZVOUS_VERSION, .chips = group->options->chips };
        uint8_t *bytes;
        size_t size;

        group->tries++;
        (void) text_copy(join.token, sizeof(join.token), group->token);
        (void) text_copy(join.group, sizeof(join.group), group->options->group);
        (void) text_copy(join.runtime, sizeof(join.runtime), group->options->runtime);
        bytes = rendezvous_join_encode(&join, &size);
        if (bytes == NULL ||
            grpc_client_call(group->client, RENDEZVOUS_JOIN, bytes, size, 0, &handlers, &group->join) < 0)
                leave(group, EXIT_FAILED);
        free(bytes);
}

static void on_signal(void *userdata, int signal_number)
{
        struct group *group = userdata;
        int status;
        pid_t pid;

        if (signal_number != SIGCHLD) {
                leave(group, 128 + signal_number);
                return;
        }
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
                if (pid != group->daemon)
                        continue;
                group->daemon = 0;
                if (group->daemon_order != 0)
                        answer(group, group->daemon_order,
                               WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), "");
                else
                        (void) sd_event_exit(group->loop.event, group->exit_code);
        }
}

static int open_group(struct group *group, struct err *err)
{
        struct grpc_client_options client = { .address = group->options->address,
                                              .keepalive_usec = 5000000,
                                              .keepalive_timeout_usec = 10000000 };
        char absolute[PATH_MAX];
        int r = rendezvous_token(group->options->token_file, group->token, err);

        if (r < 0)
                return r;
        if (mkdir(group->options->work_dir, 0755) < 0 && errno != EEXIST)
                return err_set(err, -errno, "--work-dir: '%.200s': %m", group->options->work_dir);
        if (realpath(group->options->work_dir, absolute) == NULL ||
            !text_copy(group->work, sizeof(group->work), absolute))
                return err_set(err, -EINVAL, "--work-dir: '%.200s' is not a folder",
                               group->options->work_dir);
        if (realpath(group->options->programs, absolute) == NULL ||
            !text_copy(group->programs, sizeof(group->programs), absolute))
                return err_set(err, -ENOENT, "--programs: '%.200s': %m", group->options->programs);
        (void) text_format(group->rank_file, sizeof(group->rank_file), "%s/ranks-%s.json", group->work,
                           group->options->group);
        r = tls_open(&group->options->tls, group->options->address, false, &group->tls, err);
        client.wrap = group->tls == NULL ? NULL : tls_wrap;
        client.wrap_userdata = group->tls;
        if (r == 0)
                r = rendezvous_loop_open(&group->loop, err);
        if (r == 0)
                r = grpc_client_new(group->loop.event, &client, &group->client, err);
        if (r == 0)
                r = sd_event_add_time_relative(group->loop.event, &group->retry, CLOCK_MONOTONIC, 0, 0,
                                               on_retry, group);
        return r;
}

int rendezvous_join(const struct rendezvous_options *options)
{
        struct group group = { .options = options, .loop = { .signal_fd = -1, .on_signal = on_signal } };
        struct err err = { 0 };
        int r;

        group.loop.userdata = &group;
        r = open_group(&group, &err);
        if (r == 0)
                r = sd_event_loop(group.loop.event);
        else
                say(&group, err.msg);
        if (group.join != NULL)
                grpc_client_cancel(group.join);
        (void) sd_event_source_disable_unref(group.retry);
        grpc_client_free(group.client);
        tls_close(group.tls);
        rendezvous_loop_close(&group.loop);
        if (r < 0)
                return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_USAGE;
        return r;
}

/* The group's life: its manager, its orders, its end. */
#include "job/launcher/group.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/launch/program_file.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/free_ports.h"
#include "io/grpc/grpc_client.h"
#include "io/private_folder.h"
#include "io/process.h"
#include "io/process_tree.h"
#include "io/whole_file.h"
#include "job/launcher/group_daemon.h"
#include "job/launcher/group_devices.h"
#include "job/launcher/group_ranks.h"
#include "job/launcher/in_pods.h"
#include "job/launcher/subtask_ranks.h"
#include "job/launcher/supervise.h"
#include "job/launcher/trust/proof.h"
#include "job/plan/launch_ranks.h"

#define RETRY_USEC        200000
#define LOOK_USEC         200000
#define KILL_TIMEOUT_USEC 4000000U
#define GROUP_BYTES       1024
/* Silence for so long, and what runs here is killed. The manager gives a group up later
 * (job/launcher/manager.h), so that a network that is cut never leaves two worlds at one checkpoint. */
#define KEEPALIVE_USEC         3000000
#define KEEPALIVE_TIMEOUT_USEC 6000000

struct group {
        const struct rendezvous_options *options;
        struct rendezvous_loop loop;
        struct tls *tls;
        struct grpc_client *client;
        struct grpc_client_call *join, *seen;
        sd_event_source *retry, *look, *grace;
        char token[MESSAGE_TOKEN_BYTES], address[160];
        char work[GROUP_BYTES], rank_file[GROUP_BYTES + 64], programs[GROUP_BYTES];
        char program_sha256[SHA256_HEX_BYTES]; /* "" = there is none, or none that may be started */
        struct group_devices devices;
        unsigned threads;
        struct group_ranks ranks;
        uint64_t due_usec;   /* CLOCK_MONOTONIC: no manager until then, and it is over */
        uint64_t last_world; /* of --join-file: the one that was joined */
        char last_try[160];  /* why the manager could not be joined; "" = not tried */
        bool welcome, joined, was_joined, leaving, unsaid;
        struct proof proof;
        unsigned tries;
        struct group_daemon daemon;
        pid_t pid; /* the supervisor of orted; 0 = none */
        uint64_t daemon_order;
        int exit_code;
};

static void repeat(sd_event_source *source, uint64_t after_usec)
{
        (void) sd_event_source_set_time_relative(source, after_usec);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void say(const struct group *group, int priority, const char *sentence)
{
        log_say(group->options->log, priority, "group", "group %s: %s", group->options->group, sentence);
}

static void on_answered(void *userdata, enum grpc_status status, const char *sentence)
{
        if (status != GRPC_OK)
                say(userdata, LOG_WARNING, sentence == NULL ? "the manager took no answer" : sentence);
}

static void answer(struct group *group, uint64_t id, int exit_code, const char *message)
{
        const struct grpc_client_handlers handlers = { .on_done = on_answered, .userdata = group };
        Rendezvous__Answer what = RENDEZVOUS__ANSWER__INIT;

        what.group = (char *) group->options->group;
        what.id = id;
        what.exit_code = exit_code;
        what.message = (char *) message;
        (void) message_call(group->client, MESSAGE_ANSWER, &what, 10000000, &handlers, NULL);
}

static void on_sent(void *userdata, enum grpc_status status, const char *sentence)
{
        struct group *group = userdata;

        (void) sentence;
        group->seen = NULL;
        group->unsaid = group->unsaid || status != GRPC_OK;
}

static void send_seen(struct group *group)
{
        const struct grpc_client_handlers handlers = { .on_done = on_sent, .userdata = group };
        Rendezvous__Seen what = RENDEZVOUS__SEEN__INIT;

        if (group->join == NULL || group->seen != NULL)
                return; /* the next look tries again */
        what.group = (char *) group->options->group;
        what.world = (uint32_t) group->ranks.world;
        what.leaving = group->leaving;
        what.ranks = group->ranks.list;
        what.n_ranks = group->ranks.count;
        group->unsaid =
                message_call(group->client, MESSAGE_SEEN, &what, 10000000, &handlers, &group->seen) < 0;
        if (!group->unsaid)
                group_ranks_told(&group->ranks);
}

static void look_at_ranks(struct group *group)
{
        group->unsaid = group_ranks_look(&group->ranks, clock_monotonic_usec()) || group->unsaid;
        if (group->unsaid)
                send_seen(group);
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void) usec;
        look_at_ranks(userdata);
        repeat(source, LOOK_USEC);
        return 0;
}

/* The group's name is in the file's: several groups of one host may share a folder. */
static int write_file(const struct group *group, const char *name, const char *content, struct err *err)
{
        char path[2 * GROUP_BYTES];

        (void) text_format(path, sizeof(path), "%s/%s-%s.json", group->work, name, group->options->group);
        return content == NULL ? err_set(err, -ENOMEM, "no memory for '%.200s'", path)
                               : whole_file_write(path, content, strlen(content), 0644, 0, err);
}

static int write_json(const struct group *group, const char *name, const json_t *value, struct err *err)
{
        CLEANUP(free_p) char *text = json_dumps(value, JSON_COMPACT);

        return write_file(group, name, text, err);
}

static int begin_world(struct group *group, const Subtask__Plan *plan, struct err *err)
{
        struct subtask_ranks cut = { 0 };
        const struct subtask_ranks_host host = { .folder = group->work,
                                                 .devices = group->devices.names,
                                                 .threads = group->threads };
        int r = subtask_ranks(plan, group->options->group, &host, &cut, err);

        if (r == 0 && cut.chips > group->options->chips)
                r = err_set(err, -EINVAL, "subtask: %llu ranks for %u chips", (unsigned long long) cut.chips,
                            group->options->chips);
        if (r == 0)
                r = write_json(group, "ranks", cut.file, err);
        if (r == 0)
                r = write_json(group, "subtask", cut.plan, err);
        if (r == 0 && cut.table != NULL)
                r = write_file(group, "ranktable", cut.table, err);
        if (r == 0)
                r = group_ranks_begin(&group->ranks, cut.world, cut.first_rank, cut.chips, err);
        if (r == 0)
                group_ranks_clean(&group->ranks);
        subtask_ranks_free(&cut);
        return r;
}

static void take_subtask(struct group *group, const Rendezvous__Order *order)
{
        struct err err = { 0 };
        int r = begin_world(group, order->plan, &err);

        say(group, r < 0 ? LOG_ERR : LOG_INFO, r < 0 ? err.msg : "has its subtask");
        answer(group, order->id, r < 0 ? EXIT_USAGE : 0, r < 0 ? err.msg : "");
}

static int start_daemon(struct group *group, const Rendezvous__Order *order, struct err *err)
{
        pid_t pid = 0;
        int r = group->pid != 0 ? err_set(err, -EBUSY, "a daemon is running here already")
                                : group_daemon_start(&group->daemon, order->argv, order->n_argv, &pid, err);

        if (r < 0)
                return r;
        group->pid = pid;
        group->daemon_order = order->id;
        return 0;
}

/* Everything below this process, whoever its parent was: it is a subreaper. */
static void kill_all(struct group *group)
{
        (void) process_tree_kill(KILL_TIMEOUT_USEC, 0);
        if (group->daemon.folder[0] != '\0')
                private_folder_remove(group->daemon.folder, SUPERVISE_FOLDER);
        group->daemon.folder[0] = '\0';
        group->pid = 0;
        group->daemon_order = 0;
        look_at_ranks(group);
}

static void leave(struct group *group, int exit_code)
{
        kill_all(group);
        group->exit_code = exit_code;
        (void) sd_event_exit(group->loop.event, exit_code);
}

static int on_grace(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct group *group = userdata;

        (void) usec;
        if (group_ranks_running(&group->ranks) == 0 || clock_monotonic_usec() >= group->due_usec)
                leave(group, group->exit_code);
        else
                repeat(source, LOOK_USEC);
        return 0;
}

/* Asked to end: the ranks may write a checkpoint first. */
static void leave_in_time(struct group *group, int exit_code)
{
        if (group->leaving)
                return;
        group->leaving = true;
        group->exit_code = exit_code;
        group->unsaid = true;
        group->due_usec = clock_monotonic_usec() + group->options->grace_seconds * 1000000ULL;
        look_at_ranks(group);
        if (group_ranks_terminate(&group->ranks) == 0)
                leave(group, exit_code);
        else
                repeat(group->grace, LOOK_USEC);
}

static void await_next_world(struct group *group);

/* The first order says who gives it. Nothing is done for one who does not know the token. */
static void take_welcome(struct group *group, const Rendezvous__Order *order)
{
        group->welcome = order != NULL && order->kind == RENDEZVOUS__ORDER__KIND__welcome &&
                         proof_of_manager(&group->proof, order->proof);
        if (group->welcome)
                return;
        say(group, LOG_ERR,
            "who answers at the manager's address does not know the job's token; look what listens there");
        leave(group, EXIT_USAGE);
}

static void on_order(void *userdata, const uint8_t *message, size_t size_bytes)
{
        struct group *group = userdata;
        struct err err = { 0 };
        struct pb_arena arena;
        const Rendezvous__Order *order =
                message_read(&arena, &rendezvous__order__descriptor, message, size_bytes, &err);

        if (!group->welcome) {
                take_welcome(group, order);
                pb_arena_free(&arena);
                return;
        }
        group->joined = group->was_joined = true;
        switch (order == NULL ? RENDEZVOUS__ORDER__KIND__none : order->kind) {
        case RENDEZVOUS__ORDER__KIND__subtask:
                take_subtask(group, order);
                break;
        case RENDEZVOUS__ORDER__KIND__start:
                if (start_daemon(group, order, &err) < 0)
                        answer(group, order->id, EXIT_FAILED, err.msg);
                break;
        case RENDEZVOUS__ORDER__KIND__stop:
                kill_all(group);
                answer(group, order->id, 0, "");
                break;
        case RENDEZVOUS__ORDER__KIND__terminate:
                look_at_ranks(group);
                (void) group_ranks_terminate(&group->ranks);
                break;
        case RENDEZVOUS__ORDER__KIND__share:
                if (group_ranks_share(&group->ranks, order->step, order->shares, order->n_shares, &err) < 0)
                        say(group, LOG_ERR, err.msg);
                break;
        case RENDEZVOUS__ORDER__KIND__go:
                kill_all(group);
                if (order->exit_code != 0 && group->options->join_file != NULL && !group->leaving)
                        await_next_world(group);
                else
                        leave(group, EXIT_DONE);
                break;
        default:
                say(group, LOG_ERR, err.msg);
        }
        pb_arena_free(&arena);
}

static void join_manager(struct group *group);

static int open_client(struct group *group, const char *address, struct err *err)
{
        const struct grpc_client_options options = { .address = address,
                                                     .keepalive_usec = KEEPALIVE_USEC,
                                                     .keepalive_timeout_usec = KEEPALIVE_TIMEOUT_USEC,
                                                     .wrap = group->tls == NULL ? NULL : tls_wrap,
                                                     .wrap_userdata = group->tls };

        grpc_client_free(TAKE(group->client));
        group->join = group->seen = NULL;
        if (!text_copy(group->address, sizeof(group->address), address))
                return err_set(err, -EINVAL, "address '%.100s' is too long", address);
        return grpc_client_new(group->loop.event, &options, &group->client, err);
}

/* Written by whoever starts managers; a newer world counts, also before an older one was met. Return: false
 * when it is over. */
static bool read_join_file(struct group *group)
{
        char address[IN_PODS_ADDRESS_BYTES];
        struct err err = { 0 };
        uint64_t world = 0;
        int r = in_pods_read(group->options->join_file, &world, address, &err);

        if (r == 0 && world > group->last_world) {
                grpc_client_free(TAKE(group->client));
                tls_free(TAKE(group->tls));
                r = keys_open(&group->options->tls, address, false, &group->tls, &err);
                if (r == 0)
                        r = open_client(group, address, &err);
                group->last_world = world;
                group->joined = false;
        }
        if (r == 0 || r == -EAGAIN)
                return true;
        if (r < 0)
                say(group, LOG_ERR, err.msg);
        leave(group, r == 1 ? EXIT_DONE : r == -ENOENT ? EXIT_NOT_FOUND : EXIT_USAGE);
        return false;
}

static void give_up(struct group *group)
{
        char sentence[400];

        if (group->was_joined)
                (void) text_format(sentence, sizeof(sentence),
                                   "the manager did not come back within %u s (--rejoin-seconds)",
                                   group->options->rejoin_seconds);
        else
                (void) text_format(
                        sentence, sizeof(sentence),
                        "no manager answered at %s for %u s (--wait-seconds): %s; start it with --manage",
                        group->address[0] == '\0' ? "any address" : group->address,
                        group->options->wait_seconds,
                        group->last_try[0] == '\0' ? "nothing was heard" : group->last_try);
        say(group, LOG_ERR, sentence);
        leave(group, group->was_joined ? EXIT_FAILED : EXIT_API_UNREACHABLE);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct group *group = userdata;

        (void) usec;
        if (group->leaving)
                return 0;
        if (group->options->join_file != NULL && !read_join_file(group))
                return 0;
        if (clock_monotonic_usec() >= group->due_usec)
                give_up(group);
        else if (group->client != NULL)
                join_manager(group);
        else
                repeat(source, RETRY_USEC);
        return 0;
}

static void await_next_world(struct group *group)
{
        grpc_client_free(TAKE(group->client));
        group->join = group->seen = NULL;
        group->due_usec = clock_monotonic_usec() + group->options->wait_seconds * 1000000ULL;
        say(group, LOG_INFO, "waits for the next world");
        repeat(group->retry, RETRY_USEC);
}

/* The manager is not heard any more. What runs here must not write a checkpoint beside the next world. */
static void lose_manager(struct group *group, const char *why)
{
        kill_all(group);
        say(group, LOG_WARNING, why);
        group->joined = false;
        if (group->options->join_file != NULL) {
                await_next_world(group);
                return;
        }
        group->due_usec = clock_monotonic_usec() + group->options->rejoin_seconds * 1000000ULL;
        repeat(group->retry, RETRY_USEC);
}

/* A person who has mistyped the address reads it now, not when the time is over. */
static void say_waiting(const struct group *group, const char *why)
{
        char sentence[400];

        (void) text_format(sentence, sizeof(sentence), "waits up to %u s for the manager at %s (%s)",
                           group->was_joined ? group->options->rejoin_seconds : group->options->wait_seconds,
                           group->address, why);
        say(group, LOG_INFO, sentence);
}

static void on_left(void *userdata, enum grpc_status status, const char *sentence)
{
        struct group *group = userdata;
        const char *why = sentence == NULL || sentence[0] == '\0' ? "the manager is gone" : sentence;

        group->join = NULL;
        if (group->leaving)
                return;
        if (group->joined) {
                lose_manager(group, why);
        } else if (status == GRPC_UNAVAILABLE || status == GRPC_ALREADY_EXISTS) {
                if (status == GRPC_UNAVAILABLE && group->last_try[0] == '\0')
                        say_waiting(group, why);
                (void) text_copy(group->last_try, sizeof(group->last_try), why);
                if (status == GRPC_ALREADY_EXISTS && group->tries++ == 0)
                        say(group, LOG_WARNING,
                            why); /* an earlier one of this name may be dead and not yet missed */
                repeat(group->retry, RETRY_USEC);
        } else {
                say(group, LOG_ERR, why); /* refused, and it would be again */
                leave(group, EXIT_USAGE);
        }
}

static void send_join(void *userdata)
{
        struct group *group = userdata;
        const struct grpc_client_handlers handlers = { .on_message = on_order,
                                                       .on_done = on_left,
                                                       .userdata = group };
        Rendezvous__Proof proof = proof_message(&group->proof);
        Rendezvous__Join join = RENDEZVOUS__JOIN__INIT;

        group->welcome = false;
        join.proof = &proof;
        join.chips = group->options->chips;
        join.port = free_ports(1 + group->options->chips);
        join.group = (char *) group->options->group;
        join.runtime = (char *) group->options->runtime;
        if (group->options->advertise != NULL)
                join.address = (char *) group->options->advertise;
        join.program_sha256 = group->program_sha256;
        if (message_call(group->client, MESSAGE_JOIN, &join, 0, &handlers, &group->join) < 0)
                leave(group, EXIT_FAILED);
}

static void join_manager(struct group *group)
{
        static const struct proof_asker asker = { PROOF_GROUP, 0, send_join, on_left };

        if (proof_greet(&group->proof, &asker, group->client, group->token, group) < 0)
                leave(group, EXIT_FAILED);
}

static void on_signal(void *userdata, int signal_number)
{
        struct group *group = userdata;
        int status;
        pid_t pid;

        if (signal_number != SIGCHLD) {
                leave_in_time(group, signal_number == SIGINT ? EXIT_INTERRUPTED : 128 + signal_number);
                return;
        }
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
                if (pid != group->pid)
                        continue;
                group->pid = 0;
                group->daemon.folder[0] = '\0'; /* its supervisor removed it */
                look_at_ranks(group);
                if (group->daemon_order != 0)
                        answer(group, group->daemon_order, process_exit_code(status), "");
                group->daemon_order = 0;
        }
}

/* What the speeds are kept under. Whether it may be started is judged when it is. */
static void hash_program(struct group *group)
{
        struct program_table table;
        const struct program_table_row *program;

        if (program_file_load(group->programs, &table, NULL) < 0)
                return;
        program = program_table_find(&table, group->options->runtime);
        if (program == NULL || program_file_check(program, group->program_sha256, NULL) < 0)
                group->program_sha256[0] = '\0';
        program_table_free(&table);
}

static int open_files(struct group *group, struct err *err)
{
        char absolute[PATH_MAX];
        struct stat status;

        if (mkdir(group->options->work_dir, 0755) < 0 && errno != EEXIST)
                return err_set(err, -errno, "--work-dir: '%.200s': %m", group->options->work_dir);
        if (realpath(group->options->work_dir, absolute) == NULL || stat(absolute, &status) < 0 ||
            !S_ISDIR(status.st_mode) || !text_copy(group->work, sizeof(group->work), absolute))
                return err_set(err, -EINVAL, "--work-dir: '%.200s' is not a folder",
                               group->options->work_dir);
        if (realpath(group->options->programs, absolute) == NULL ||
            !text_copy(group->programs, sizeof(group->programs), absolute))
                return err_set(err, -ENOENT, "--programs: '%.200s': %m", group->options->programs);
        (void) text_format(group->rank_file, sizeof(group->rank_file), "%s/ranks-%s.json", group->work,
                           group->options->group);
        group->daemon = (struct group_daemon){ .work = group->work,
                                               .programs = group->programs,
                                               .rank_file = group->rank_file };
        hash_program(group);
        group->ranks.folder = group->work;
        group->ranks.log_lines = group->options->log_lines || group->options->join_file != NULL;
        return 0;
}

static int open_group(struct group *group, struct err *err)
{
        int r = rendezvous_token(group->options->token_file, group->token, err);

        if (r == 0)
                r = open_files(group, err);
        group->devices = group_devices_find(group->options->runtime, group->options->chips);
        if (getenv("OMP_NUM_THREADS") == NULL) /* who made this container knows better what it may use */
                group->threads = launch_ranks_threads(process_cores(), group->options->chips);
        if (r == 0 && group->options->address != NULL)
                r = keys_open(&group->options->tls, group->options->address, false, &group->tls, err);
        if (r == 0)
                r = rendezvous_loop_open(&group->loop, err);
        if (r == 0 && group->options->address != NULL)
                r = open_client(group, group->options->address, err);
        if (r == 0)
                r = sd_event_add_time_relative(group->loop.event, &group->retry, CLOCK_MONOTONIC, 0, 0,
                                               on_retry, group);
        if (r == 0)
                r = sd_event_add_time_relative(group->loop.event, &group->look, CLOCK_MONOTONIC, LOOK_USEC, 0,
                                               on_look, group);
        if (r == 0)
                r = sd_event_add_time_relative(group->loop.event, &group->grace, CLOCK_MONOTONIC, 0, 0,
                                               on_grace, group);
        if (r == 0)
                r = sd_event_source_set_enabled(group->grace, SD_EVENT_OFF);
        (void) process_tree_adopt();
        group->due_usec = clock_monotonic_usec() + group->options->wait_seconds * 1000000ULL;
        return r;
}

int group_run(const struct rendezvous_options *options)
{
        struct group group = { .options = options, .loop = { .signal_fd = -1, .on_signal = on_signal } };
        struct err err = { 0 };
        int r;

        group.loop.userdata = &group;
        r = open_group(&group, &err);
        if (r == 0)
                r = sd_event_loop(group.loop.event);
        else
                say(&group, LOG_ERR, err.msg);
        if (group.join != NULL)
                grpc_client_cancel(group.join);
        (void) sd_event_source_disable_unref(group.retry);
        (void) sd_event_source_disable_unref(group.look);
        (void) sd_event_source_disable_unref(group.grace);
        group_ranks_free(&group.ranks);
        group_devices_free(&group.devices);
        grpc_client_free(group.client);
        tls_free(group.tls);
        rendezvous_loop_close(&group.loop);
        if (r < 0)
                return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_USAGE;
        return r;
}

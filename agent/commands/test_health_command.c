/* `remuda health`: what is listed of a node, with which exit code, and what becomes of an operator's word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/inventory/inventory_json.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "cli/command/commands.h"
#include "io/clock.h"

enum { ARGUMENTS_MAX = 8, ANSWER_BYTES = 16384 };

struct place {
        char folder[64], socket[96], inventory[96], said[96];
        pid_t agent;
};

static void read_whole(const char *path, char ret[ANSWER_BYTES])
{
        CLEANUP(fclose_p) FILE *file = fopen(path, "re");

        ret[file == NULL ? 0 : fread(ret, 1, ANSWER_BYTES - 1, file)] = '\0';
}

static void answer(int fd, unsigned status, const char *body)
{
        static char reply[ANSWER_BYTES + 256];

        (void) text_format(reply, sizeof(reply),
                           "HTTP/1.1 %u As It Is\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                           status, strlen(body), body);
        if (write(fd, reply, strlen(reply)) < 0)
                _exit(3);
}

/* An agent that tells the inventory of a file, and knows the device "known". */
static _Noreturn void serve(int listener, const char *inventory)
{
        static char request[4096], body[ANSWER_BYTES];

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
                int fd = accept(listener, NULL, NULL);
                size_t n = 0;
                ssize_t got = 1;

                for (request[0] = '\0'; got > 0 && strstr(request, "\r\n\r\n") == NULL; n += (size_t) got) {
                        got = read(fd, request + n, sizeof(request) - 1 - n);
                        request[n + (got > 0 ? (size_t) got : 0)] = '\0';
                }
                read_whole(inventory, body);
                if (text_starts_with(request, "GET /v1/inventory "))
                        answer(fd, 200, body);
                else if (text_starts_with(request, "POST /v1/health/clear?device=known "))
                        answer(fd, 200, "{\"cleared\":\"known\"}");
                else if (text_starts_with(request, "POST /v1/health/clear?device=a%3Fb "))
                        answer(fd, 404, "{\"error\":\"no device 'a?b' on this node\"}");
                else
                        answer(fd, 403, "{\"error\":\"only root may do this\"}");
                (void) close(fd);
        }
}

static int set_up(void **state)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct place *p = calloc(1, sizeof(*p));
        int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(p != NULL && listener >= 0);
        (void) text_copy(p->folder, sizeof(p->folder), "/tmp/test_health_command.XXXXXX");
        assert_non_null(mkdtemp(p->folder));
        assert_true(text_format(p->socket, sizeof(p->socket), "%s/agent.sock", p->folder));
        assert_true(text_format(p->inventory, sizeof(p->inventory), "%s/inventory", p->folder));
        assert_true(text_format(p->said, sizeof(p->said), "%s/said", p->folder));
        assert_true(text_copy(address.sun_path, sizeof(address.sun_path), p->socket));
        assert_int_equal(bind(listener, (const struct sockaddr *) &address, sizeof(address)), 0);
        assert_int_equal(listen(listener, 8), 0);
        p->agent = fork();
        assert_true(p->agent >= 0);
        if (p->agent == 0)
                serve(listener, p->inventory);
        assert_int_equal(close(listener), 0);
        *state = p;
        return 0;
}

static int tear_down(void **state)
{
        struct place *p = *state;

        assert_int_equal(kill(p->agent, SIGKILL), 0);
        assert_int_equal(waitpid(p->agent, NULL, 0), p->agent);
        (void) unlink(p->socket);
        (void) unlink(p->inventory);
        (void) unlink(p->said);
        assert_int_equal(rmdir(p->folder), 0);
        free(p);
        return 0;
}

/* Both outputs go to one file while the line runs; "@sock" is the agent's socket. */
static int run(const struct place *p, const char *line, char said[ANSWER_BYTES])
{
        CLEANUP(free_p) char *copy = strdup(line);
        char *argv[ARGUMENTS_MAX + 1] = { (char *) "health" }, *rest = copy;
        int argc = 1, code, kept[3];
        CLEANUP(close_p) int out = open(p->said, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(copy != NULL && out >= 0);
        for (char *word; argc < ARGUMENTS_MAX && (word = strtok_r(rest, " ", &rest)) != NULL; argc++)
                argv[argc] = strcmp(word, "@sock") == 0 ? (char *) p->socket : word;
        (void) fflush(NULL);
        for (int fd = 1; fd < 3; fd++) {
                kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
                assert_true(kept[fd] >= 0 && dup2(out, fd) == fd);
        }
        code = command_health(argc, argv);
        (void) fflush(NULL);
        for (int fd = 1; fd < 3; fd++) {
                (void) dup2(kept[fd], fd);
                (void) close(kept[fd]);
        }
        read_whole(p->said, said);
        return code;
}

static void put(const struct place *p, const char *text)
{
        FILE *file = fopen(p->inventory, "we");

        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static void want(const struct place *p, const char *line, int code, const char *says)
{
        char said[ANSWER_BYTES];
        int got = run(p, line, said);

        if (got != code || strstr(said, says) == NULL)
                fail_msg("health %s: exit %d, not %d with '%s':\n%s", line, got, code, says, said);
}

static struct device *add(struct inventory *node, const char *id, enum device_health health, uint64_t since)
{
        struct device *device = inventory_add_device(node);

        assert_non_null(device);
        (void) text_copy(device->id, sizeof(device->id), id);
        (void) text_copy(device->group, sizeof(device->group), "nvidia-0");
        device->health = health;
        device->usable = health == HEALTH_HEALTHY || health == HEALTH_DEGRADED;
        device->since_usec = since;
        return device;
}

static void put_node(const struct place *p, const struct inventory *node)
{
        json_t *object = inventory_json_encode(node);
        CLEANUP(free_p) char *text = json_dumps(object, 0);

        assert_non_null(text);
        put(p, text);
        json_decref(object);
}

static void what_is_not_well_is_listed(void **state)
{
        const struct place *p = *state;
        const uint64_t now = clock_realtime_usec(), second = 1000000;
        struct inventory node;
        struct device *ill;
        char said[ANSWER_BYTES];

        inventory_init(&node);
        add(&node, "GPU-0", HEALTH_HEALTHY, now);
        put_node(p, &node);
        want(p, "--socket @sock", EXIT_DONE, "1 devices, all healthy\n");
        want(p, "--socket @sock --all", EXIT_DONE, "GPU-0");
        add(&node, "out", HEALTH_UNKNOWN, 0)->group[0] = '\0'; /* kept out on purpose */
        put_node(p, &node);
        want(p, "--socket @sock", EXIT_DONE, "out");
        ill = add(&node, "GPU-1", HEALTH_UNHEALTHY, now - 11460 * second);
        (void) text_copy(ill->reason, sizeof(ill->reason), "FallenOffBus");
        put_node(p, &node);
        want(p, "--socket @sock", EXIT_UNHEALTHY, "FallenOffBus");
        want(p, "--socket @sock", EXIT_UNHEALTHY, " 3.2h ");
        node.devices[2].since_usec = now - 610 * second;
        put_node(p, &node);
        want(p, "--socket @sock", EXIT_UNHEALTHY, " 10m ");
        node.devices[2].since_usec = now + 3600 * second; /* by a clock that is wrong */
        node.devices[2].health = HEALTH_DEGRADED;
        node.devices[2].usable = true;
        put_node(p, &node);
        assert_int_equal(run(p, "--socket @sock", said), EXIT_UNHEALTHY);
        assert_null(strstr(said, " min "));
        assert_null(strstr(said, " h "));
        assert_null(strstr(said, "GPU-0"));
        assert_int_equal(run(p, "--socket @sock --output json", said), EXIT_UNHEALTHY);
        assert_true(strstr(said, "GPU-0") != NULL && strstr(said, "degraded") != NULL);
        inventory_free(&node);
}

static void an_answer_of_no_use_is_said(void **state)
{
        const struct place *p = *state;

        put(p, "{");
        want(p, "--socket @sock", EXIT_USAGE, "the agent's answer is not JSON");
        put(p, "{\"kind\":\"Pod\"}");
        want(p, "--socket @sock", EXIT_USAGE, "inventory: not a NodeAccelerators object");
        want(p, "--socket /none/agent.sock", EXIT_API_UNREACHABLE, "no agent answers at /none/agent.sock");
}

static void an_operator_has_his_word(void **state)
{
        const struct place *p = *state;
        char id[600], line[640], said[ANSWER_BYTES];

        want(p, "clear known --socket @sock", EXIT_DONE, "known: cleared\n");
        want(p, "clear other known --socket @sock", EXIT_NO_PERMISSION, "only root may do this");
        want(p, "clear other known --socket @sock", EXIT_NO_PERMISSION, "known: cleared\n");
        want(p, "clear a?b --socket @sock", EXIT_NOT_FOUND, "no device 'a?b' on this node");
        want(p, "clear --socket @sock", EXIT_USAGE, "it takes nothing, or `clear ID...`");
        want(p, "mend known --socket @sock", EXIT_USAGE, "it takes nothing, or `clear ID...`");
        want(p, "--help", EXIT_DONE, "`clear` forgets the faults of devices");
        memset(id, 'x', sizeof(id));
        id[sizeof(id) - 1] = '\0';
        assert_true(text_format(line, sizeof(line), "clear %s --socket @sock", id));
        assert_int_equal(run(p, line, said), EXIT_USAGE);
        assert_non_null(strstr(said, "is no device's id"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(what_is_not_well_is_listed, set_up, tear_down),
                cmocka_unit_test_setup_teardown(an_answer_of_no_use_is_said, set_up, tear_down),
                cmocka_unit_test_setup_teardown(an_operator_has_his_word, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

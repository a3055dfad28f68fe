/* Launch API: what each request is answered, to whom, and one launch from its order to its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/launch/launch_api.h"
#include "base/cleanup.h"
#include "io/loop.h"
#include "tests/support/patience.h"

#define NOBODY 65534
#define GROUP  "daemon" /* may launch */
#define TABLE                                                                                                \
        "programs:\n  cpu: {path: /bin/sleep, args: ['60'], environment: [LANG, PATH]}\n"                    \
        "  cuda: {path: /none/such}\n"

struct bed {
        char folder[64], socket[96], table[96], replied[8192];
        struct agent_config config;
        struct inventory node;
        struct log log;
        struct launch_programs programs;
        struct services services;
        struct launch_api_options options;
        struct launch_api *api;
        size_t scans;
};

static void on_scan(void *userdata, const char *why)
{
        struct bed *bed = userdata;

        assert_string_equal(why, "launch");
        bed->scans++;
}

static void on_inventory(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) userdata;
        (void) request;
        http_reply_error(reply, 418, "an inventory");
}

static void on_metrics(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) userdata;
        (void) request;
        http_reply_error(reply, 418, "metrics");
}

static int on_clear(void *userdata, const char *device_id)
{
        const struct bed *bed = userdata;

        return inventory_find_device(&bed->node, device_id) != NULL ? 0 : -ENOENT;
}

static void add(struct inventory *node, const char *id, const char *group, const char *runtime)
{
        struct device *device = inventory_add_device(node);
        struct device_group *of = inventory_add_group(node);

        assert_true(device != NULL && of != NULL);
        (void) text_copy(device->id, sizeof(device->id), id);
        (void) text_copy(device->group, sizeof(device->group), group);
        (void) text_copy(of->name, sizeof(of->name), group);
        (void) text_copy(of->runtime, sizeof(of->runtime), runtime);
        device->usable = true;
        inventory_count(node);
}

static int set_up(void **state)
{
        struct bed *bed = calloc(1, sizeof(*bed));
        FILE *table;

        assert_non_null(bed);
        (void) text_copy(bed->folder, sizeof(bed->folder), "/tmp/test_launch_api.XXXXXX");
        assert_non_null(mkdtemp(bed->folder));
        assert_int_equal(chmod(bed->folder, 0755), 0); /* anybody may knock */
        assert_true(text_format(bed->socket, sizeof(bed->socket), "%s/agent.sock", bed->folder));
        assert_true(text_format(bed->table, sizeof(bed->table), "%s/programs", bed->folder));
        table = fopen(bed->table, "we");
        assert_non_null(table);
        assert_true(fputs(TABLE, table) >= 0);
        assert_int_equal(fclose(table), 0);
        log_init(&bed->log, "test", NULL, NULL);
        launch_programs_load(&bed->programs, bed->table, true, &bed->log);
        (void) text_copy(bed->config.launch_group, sizeof(bed->config.launch_group), GROUP);
        inventory_init(&bed->node);
        add(&bed->node, "cpu-numa0", "cpu-0", "cpu");
        add(&bed->node, "GPU-0", "nvidia-0", "cuda");
        bed->services = (struct services){ .log = &bed->log,
                                           .config = &bed->config,
                                           .published = &bed->node,
                                           .scan = on_scan,
                                           .userdata = bed };
        bed->options = (struct launch_api_options){ .socket = bed->socket,
                                                    .programs = &bed->programs,
                                                    .get_inventory = on_inventory,
                                                    .get_metrics = on_metrics,
                                                    .clear = on_clear };
        assert_int_equal(loop_new(&bed->services.loop, NULL), 0);
        *state = bed;
        return 0;
}

static int tear_down(void **state)
{
        struct bed *bed = *state;

        launch_api_free(bed->api);
        launch_programs_free(&bed->programs);
        inventory_free(&bed->node);
        assert_null(sd_event_unref(bed->services.loop));
        (void) unlink(bed->socket);
        (void) unlink(bed->table);
        assert_int_equal(rmdir(bed->folder), 0);
        free(bed);
        return 0;
}

/* A connection of this user and group: the kernel tells who it was that connected. */
static int dial(const struct bed *bed, uid_t uid, gid_t gid)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        assert_true(text_copy(address.sun_path, sizeof(address.sun_path), bed->socket));
        assert_true(uid == 0 || (setegid(gid) == 0 && seteuid(uid) == 0));
        assert_int_equal(connect(fd, (const struct sockaddr *) &address, sizeof(address)), 0);
        assert_true(uid == 0 || (seteuid(0) == 0 && setegid(getgid()) == 0));
        return fd;
}

/* Return: the status; the whole reply is in bed->replied. */
static unsigned ask(struct bed *bed, uid_t uid, gid_t gid, const char *line, const char *body)
{
        CLEANUP(close_p) int fd = dial(bed, uid, gid);
        uint64_t until = loop_now_usec(bed->services.loop) + patience_usec();
        char request[8192];
        size_t length = 0;
        unsigned status = 0;
        ssize_t n = -1;

        assert_true(
                text_format(request, sizeof(request),
                            "%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                            line, strlen(body), body));
        assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t) strlen(request));
        while (n != 0 && loop_now_usec(bed->services.loop) < until) {
                assert_true(sd_event_run(bed->services.loop, 10000) >= 0);
                n = recv(fd, bed->replied + length, sizeof(bed->replied) - 1 - length, MSG_DONTWAIT);
                length += n > 0 ? (size_t) n : 0;
        }
        bed->replied[length] = '\0';
        assert_int_equal(sscanf(bed->replied, "HTTP/1.1 %u", &status), 1);
        return status;
}

static gid_t launch_group(void)
{
        const struct group *group = getgrnam(GROUP);

        assert_non_null(group);
        return group->gr_gid;
}

static void want(struct bed *bed, uid_t uid, gid_t gid, const char *line, const char *body, unsigned status,
                 const char *says)
{
        unsigned got = ask(bed, uid, gid, line, body);

        if (got != status || strstr(bed->replied, says) == NULL)
                fail_msg("%s %s: %s, not %u %s", line, body, bed->replied, status, says);
}

/* clang-format off */
static const struct {
        const char *line, *body;
        unsigned status;
        const char *says;
} questions[] = {
        { "GET /v1/launch",                                    "", 400, "runtime is missing, or the name of none" },
        { "GET /v1/launch?runtime=No+Name",                    "", 400, "runtime is missing, or the name of none" },
        { "GET /v1/launch?runtime=cpu",                        "", 200, "\"path\":\"/bin/sleep\",\"args\":[\"60\"]" },
        { "GET /v1/launch?runtime=cpu",                        "", 200, "\"allowedEnvironment\":[\"LANG\",\"PATH\"],\"inherit\":false" },
        { "GET /v1/launch?runtime=cpu&devices=cpu-numa0",      "", 200, "\"devices\":[\"cpu-numa0\"]" },
        { "GET /v1/launch?runtime=cpu&devices=none",           "", 404, "no device 'none' on this node" },
        { "GET /v1/launch?runtime=cpu&devices=%ff",            "", 404, "what is asked for is not valid UTF-8" },
        { "GET /v1/launch?runtime=cpu&devices=GPU-0",          "", 400, "device 'GPU-0' does not run 'cpu'; its runtime is 'cuda'" },
        { "GET /v1/launch?runtime=hip",                        "", 404, "no program for runtime 'hip' in the program table" },
        { "GET /v1/launch?runtime=cuda",                       "", 404, "'/none/such': No such file or directory; install the program or mend the table" },
        { "POST /v1/launch",                                   "{", 400, "the body is not JSON" },
        { "POST /v1/launch",                                   "{}", 400, "runtime: is missing" },
        { "POST /v1/launch",                                   "{\"runtime\":\"hip\"}", 404, "no program for runtime 'hip'" },
        { "POST /v1/launch",                                   "{\"runtime\":\"cuda\"}", 404, "'/none/such'" },
        { "POST /v1/launch",                                   "{\"runtime\":\"cpu\",\"chips\":2}", 409, "2 devices of runtime 'cpu' are asked for, 1 are free" },
        { "POST /v1/launch",                                   "{\"runtime\":\"cpu\",\"devices\":[\"none\"]}", 404, "no device 'none' on this node" },
        { "POST /v1/launch",                                   "{\"runtime\":\"cpu\",\"environment\":{\"LD_PRELOAD\":\"x\"}}", 400, "environment.LD_PRELOAD" },
        { "POST /v1/launch",                                   "{\"runtime\":\"cpu\",\"directory\":\"/none\"}", 404, "'/bin/sleep' as uid 0: No such file or directory" },
        { "GET /v1/launches",                                  "", 200, "{\"launches\":[]}" },
        { "POST /v1/launch/stop",                              "", 400, "id is missing: /v1/launch/stop?id=1" },
        { "POST /v1/launch/stop?id=one",                       "", 400, "id is missing" },
        { "POST /v1/launch/stop?id=4294967296",                "", 400, "id is missing" },
        { "POST /v1/launch/stop?id=1",                         "", 404, "no launch 1" },
        { "POST /v1/health/clear",                             "", 400, "device is missing: /v1/health/clear?device=ID" },
        { "POST /v1/health/clear?device=none",                 "", 404, "no device 'none' on this node" },
        { "POST /v1/health/clear?device=GPU-0",                "", 200, "{\"cleared\":\"GPU-0\"}" },
        { "GET /v1/inventory",                                 "", 418, "an inventory" },
        { "GET /metrics",                                      "", 418, "metrics" },
};

/* Whoever is neither root nor of the group, outside any pod. */
static const struct {
        const char *line;
        const char *says;
} refusals[] = {
        { "GET /v1/launch?runtime=cpu",          "only pods, root and the group 'daemon' may ask" },
        { "POST /v1/launch",                     "only root and the group 'daemon', outside any pod, may do this" },
        { "GET /v1/launches",                    "only root and the group 'daemon', outside any pod, may do this" },
        { "POST /v1/launch/stop?id=1",           "only root and the group 'daemon', outside any pod, may do this" },
        { "POST /v1/health/clear?device=GPU-0",  "only root and the group 'daemon', outside any pod, may do this" },
};
/* clang-format on */

static void every_question_has_its_answer(void **state)
{
        struct bed *bed = *state;

        if (geteuid() != 0)
                skip(); /* who is not root is not trusted, and cannot be another */
        assert_int_equal(launch_api_new(&bed->services, &bed->options, &bed->api, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
                want(bed, 0, 0, questions[i].line, questions[i].body, questions[i].status, questions[i].says);
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
                want(bed, NOBODY, NOBODY, refusals[i].line, "{\"runtime\":\"cpu\"}", 403, refusals[i].says);
        assert_int_equal(bed->scans, 0);
}

static void what_is_launched_holds_its_device_until_its_end(void **state)
{
        static const char order[] = "{\"runtime\":\"cpu\"}";
        struct bed *bed = *state;
        struct text page = { 0 };

        if (geteuid() != 0)
                skip();
        assert_int_equal(launch_api_new(&bed->services, &bed->options, &bed->api, NULL), 0);
        want(bed, 0, 0, "POST /v1/launch", order, 201, "\"id\":1,\"pid\":");
        assert_int_equal(bed->scans, 1);
        assert_true(launch_api_holds(bed->api, "cpu-numa0"));
        assert_false(launch_api_holds(bed->api, "GPU-0") || launch_api_holds(NULL, "cpu-numa0"));
        launch_api_fill(bed->api, &bed->node);
        assert_int_equal(inventory_find_group(&bed->node, "cpu-0")->free, 0);
        assert_int_equal(inventory_find_group(&bed->node, "nvidia-0")->free, 1);
        launch_api_fill(bed->api, &bed->node); /* none is free: fewer cannot be */
        launch_api_fill(NULL, &bed->node);
        assert_int_equal(inventory_find_group(&bed->node, "cpu-0")->free, 0);
        want(bed, 0, 0, "POST /v1/launch", order, 409,
             "1 devices of runtime 'cpu' are asked for, 0 are free");
        want(bed, 0, 0, "POST /v1/launch", "{\"runtime\":\"cpu\",\"devices\":[\"cpu-numa0\"]}", 409,
             "device 'cpu-numa0' is not free");
        want(bed, NOBODY, launch_group(), "GET /v1/launches", "", 200, "\"devices\":[\"cpu-numa0\"]");
        want(bed, NOBODY, launch_group(), "POST /v1/launch/stop?id=1", "", 403, "launch 1 is another user's");
        want(bed, 0, 0, "POST /v1/launch/stop?id=1", "", 200, "{\"stopping\":1}");
        for (uint64_t until = loop_now_usec(bed->services.loop) + patience_usec();
             launch_api_holds(bed->api, "cpu-numa0") && loop_now_usec(bed->services.loop) < until;)
                assert_true(sd_event_run(bed->services.loop, 10000) >= 0);
        assert_int_equal(bed->scans, 2);
        want(bed, NOBODY, launch_group(), "POST /v1/launch",
             "{\"runtime\":\"cpu\",\"args\":[\"0\"],\"environment\":{\"LANG\":\"C\",\"PATH\":\"/x\","
             "\"REMUDA_VENDOR\":\"x\",\"REMUDA_X\":\"y\"}}",
             201, "\"id\":2,");
        launch_programs_metrics(&bed->programs, &page);
        assert_non_null(strstr(page.data, "{runtime=\"cpu\",result=\"started\"} 2\n"));
        assert_non_null(strstr(page.data, "{runtime=\"cpu\",result=\"failed\"} 1\n"));
        assert_non_null(strstr(page.data, "{runtime=\"cpu\",result=\"refused\"} 2\n"));
        text_free(&page);
}

static void an_order_has_so_many_variables(void **state)
{
        struct bed *bed = *state;
        struct text order = { 0 };

        if (geteuid() != 0)
                skip();
        assert_int_equal(launch_api_new(&bed->services, &bed->options, &bed->api, NULL), 0);
        text_append(&order, "{\"runtime\":\"cpu\",\"environment\":{");
        for (unsigned i = 0; i < 256; i++)
                text_printf(&order, "%s\"REMUDA_%u\":\"\"", i > 0 ? "," : "", i);
        text_append(&order, "}}");
        want(bed, 0, 0, "POST /v1/launch", order.data, 400, "environment: 256 variables, at most 252 pass");
        text_free(&order);
}

static void a_socket_that_cannot_be_is_said(void **state)
{
        struct bed *bed = *state;
        struct err err = { 0 };
        char path[256];

        memset(path, 'x', sizeof(path));
        path[0] = '/';
        path[sizeof(path) - 1] = '\0';
        bed->options.socket = "none";
        assert_int_equal(launch_api_new(&bed->services, &bed->options, &bed->api, &err), 0);
        assert_null(bed->api);
        bed->options.socket = path;
        assert_int_equal(launch_api_new(&bed->services, &bed->options, &bed->api, &err), -ENAMETOOLONG);
        assert_non_null(strstr(err.msg, "is longer than a socket's path may be"));
        assert_true(text_format(path, sizeof(path), "%s/none/agent.sock", bed->folder));
        assert_int_equal(launch_api_new(&bed->services, &bed->options, &bed->api, &err), -ENOENT);
        assert_int_equal(strncmp(err.msg, "--launch-socket /tmp/", 21), 0);
        assert_null(bed->api);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(every_question_has_its_answer, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_is_launched_holds_its_device_until_its_end, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(an_order_has_so_many_variables, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_socket_that_cannot_be_is_said, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

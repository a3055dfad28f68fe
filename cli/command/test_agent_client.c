/* What a command makes of an agent's answers, and of none; how it finds a figure on a page of metrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command/agent_client.h"
#include "tests/support/http_child.h"

static const char page[] =
        "# HELP busy how busy\n"
        "busy{uuid=\"a\",engine=\"compute\"} 0.5\n"
        "busy{uuid=\"b\",engine=\"compute\"} 0.75\n"
        "busy_total 7\n"
        "bare 3\n"
        "cut{uuid=\"a\"}\n"
        "odd{uuid=\"a\"} many\n"
        "long{uuid=\"a\"} 0.00000000000000000000000000000000000000000000000000000000000000000001\n"
        "last 4";

/* clang-format off */
static const struct {
        const char *name, *labels[3];
        double value; /* -1 = it is not there */
} figures[] = {
        { "busy",       { "uuid=\"a\"", "engine=\"compute\"" }, 0.5 },
        { "busy",       { "uuid=\"b\"" },                       0.75 },
        { "busy",       { "uuid=\"c\"" },                       -1 },
        { "busy_total", { NULL },                               7 },
        { "bus",        { NULL },                               -1 },
        { "bare",       { NULL },                               3 },
        { "bare",       { "uuid=\"a\"" },                       -1 },
        { "cut",        { "uuid=\"a\"" },                       -1 },
        { "odd",        { "uuid=\"a\"" },                       -1 },
        { "long",       { "uuid=\"a\"" },                       -1 },
        { "last",       { NULL },                               4 },
};
/* clang-format on */

static void a_figure_is_found_by_name_and_labels(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
                double value = -1;
                bool found = agent_client_metric(page, figures[i].name, figures[i].labels, &value);

                if (found != (figures[i].value >= 0) || value < figures[i].value || value > figures[i].value)
                        fail_msg("%s %s: %d %g", figures[i].name,
                                 figures[i].labels[0] != NULL ? figures[i].labels[0] : "", found, value);
        }
        assert_true(agent_client_metric(page, "bare", NULL, &(double){ 0 }));
        assert_false(agent_client_metric("", "bare", NULL, &(double){ 0 }));
}

static void an_answer_is_taken_or_refused_with_its_sentence(void **state)
{
        struct http_child server = http_child_start();
        const struct agent_client client = { .address = server.address };
        CLEANUP(free_p) char *answer = NULL, *unset = NULL;
        struct inventory inventory;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(agent_client_request(&client, "GET", "/hello/you?name=x", &answer, &err), 0);
        assert_string_equal(answer, "/hello/you|x");
        assert_int_equal(agent_client_request(&client, "GET", "/none", &unset, &err), -ENOENT);
        assert_true(err.msg[0] != '\0');
        assert_int_equal(agent_client_request(&client, "GET", "/echo", &unset, &err), -EIO); /* 405 */
        assert_int_equal(agent_client_inventory(&client, &inventory, &err), -ENOENT);
        assert_null(unset);
        http_child_stop(&server);
        assert_int_equal(agent_client_request(&client, "GET", "/", &unset, &err), -ECONNREFUSED);
        assert_true(text_starts_with(err.msg, "no agent answers at 127.0.0.1:"));
        assert_non_null(strstr(err.msg, "name it with --socket or --agent"));
}

static void without_an_address_it_is_the_socket(void **state)
{
        const struct agent_client client = { .socket = "/nonexistent/agent.sock" };
        CLEANUP(free_p) char *answer = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(agent_client_request(&client, "POST", "/", &answer, &err), -ECONNREFUSED);
        assert_true(text_starts_with(err.msg, "no agent answers at /nonexistent/agent.sock: "));
}

static void what_stands_in_a_path_is_escaped(void **state)
{
        CLEANUP(free_p) char *escaped = agent_client_escape("MIG-GPU/7 0&x");

        (void) state;
        assert_string_equal(escaped, "MIG-GPU%2F7%200%26x");
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_figure_is_found_by_name_and_labels),
                cmocka_unit_test(an_answer_is_taken_or_refused_with_its_sentence),
                cmocka_unit_test(without_an_address_it_is_the_socket),
                cmocka_unit_test(what_stands_in_a_path_is_escaped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

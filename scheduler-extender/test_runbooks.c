/* Runbooks: a page by its name and nothing else; who asks for another is told which there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler-extender/runbooks.h"

static const struct {
        const char *path;
        unsigned status;
        const char *begins, *has;
} rows[] = {
        { "/runbooks/RemudaExtenderDown", 200, "# RemudaExtenderDown\n", "## How it ends" },
        { "/runbooks/RemudaDeviceUnhealthy", 200, "# RemudaDeviceUnhealthy\n", "`remuda health clear ID`" },
        { "/runbooks/", 200, "These are here", "- [RemudaJobSilent](/runbooks/RemudaJobSilent)\n" },
        { "/runbooks/RemudaNothing", 404, "There is no such runbook.",
          "- [RemudaJobSilent](/runbooks/RemudaJobSilent)\n" },
        { "/runbooks/RemudaExtenderDown.md", 404, "There is no such runbook.", "RemudaAgentDown" },
        { "/runbooks/remudaextenderdown", 404, "There is no such runbook.", "RemudaAgentDown" },
        { "/runbooks/../runbooks/RemudaExtenderDown", 404, "There is no such runbook.", "RemudaAgentDown" },
        { "/runbooks//etc/passwd", 404, "There is no such runbook.", "RemudaAgentDown" },
        { "/runbooks/<script>", 404, "There is no such runbook.", "RemudaAgentDown" },
};

static void a_page_by_its_name_alone(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct http_request request = { .method = "GET", .path = rows[i].path };
                struct http_reply reply = { 0 };

                runbooks_handler(NULL, &request, &reply);
                if (reply.status != rows[i].status || strstr(reply.body, rows[i].begins) != reply.body ||
                    strstr(reply.body, rows[i].has) == NULL || strstr(reply.body, "<script>") != NULL)
                        fail_msg("%s: got %u and \"%s\"", rows[i].path, reply.status, reply.body);
                assert_string_equal(reply.content_type, "text/markdown; charset=utf-8");
                http_reply_drop(&reply);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(a_page_by_its_name_alone) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Who is answered, and whom a browser asks for without knowing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "scheduler-extender/page/page_guard.h"

static void only_names_of_this_machine_are_loopback(void **state)
{
        static const char *const own[] = { "127.0.0.1",   "127.0.0.1:9520", "localhost",    "LOCALHOST:1",
                                           "[::1]:65535", "[::1]",          "127.8.9.10:80" };
        static const char *const others[] = { "",
                                              "evil.example",
                                              "127.0.0.1.evil.example",
                                              "127.0.0.1:80.evil.example",
                                              "localhost.evil.example",
                                              "localhost:",
                                              "127.1",
                                              "128.0.0.1",
                                              "1270.0.0.1",
                                              "[::1].evil",
                                              "[::2]",
                                              "127.0.0.1:123456",
                                              "user@127.0.0.1" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
                if (!page_guard_is_loopback(own[i]))
                        fail_msg("%s is ours", own[i]);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (page_guard_is_loopback(others[i]))
                        fail_msg("%s is not ours", others[i]);
}

static void other_pages_are_refused(void **state)
{
        static const struct {
                const char *what;
                struct page_guard_request request;
                bool refused;
        } rows[] = {
                { "curl", { .host = "127.0.0.1:1" }, false },
                { "HTTP/1.0 without a Host", { .host = NULL }, false },
                { "an address that is typed in",
                  { .host = "localhost:1", .fetch_site = "none", .fetch_mode = "navigate" },
                  false },
                { "our own page",
                  { .host = "127.0.0.1:1", .origin = "http://127.0.0.1:1", .fetch_site = "same-origin" },
                  false },
                { "a name that was rebound", { .host = "evil.example:1" }, true },
                { "... though it is the page's own",
                  { .host = "evil.example:1",
                    .origin = "http://evil.example:1",
                    .fetch_site = "same-origin" },
                  true },
                { "another page's script",
                  { .host = "127.0.0.1:1", .origin = "https://evil.example" },
                  true },
                { "another port", { .host = "127.0.0.1:1", .origin = "http://127.0.0.1:2" }, true },
                { "a page without an origin", { .host = "127.0.0.1:1", .origin = "null" }, true },
                { "a picture in another page",
                  { .host = "127.0.0.1:1", .fetch_site = "cross-site", .fetch_mode = "no-cors" },
                  true },
                { "a link in another page",
                  { .host = "127.0.0.1:1", .fetch_site = "cross-site", .fetch_mode = "navigate" },
                  true },
                { "a link of another port here",
                  { .host = "127.0.0.1:1", .fetch_site = "same-site", .fetch_mode = "navigate" },
                  false },
                { "a script of another port here",
                  { .host = "127.0.0.1:1", .fetch_site = "same-site", .fetch_mode = "cors" },
                  true },
                { "a service's name, with a certificate",
                  { .host = "remuda.example", .certified = true },
                  false },
                { "... and another page in that browser",
                  { .host = "remuda.example", .certified = true, .origin = "https://evil.example" },
                  true },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if ((page_guard_refuses(&rows[i].request) != NULL) != rows[i].refused)
                        fail_msg("%s: %s", rows[i].what, rows[i].refused ? "is refused" : "is answered");
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_names_of_this_machine_are_loopback),
                cmocka_unit_test(other_pages_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

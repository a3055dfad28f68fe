/* Addresses as people write them, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "io/address.h"

static void addresses_are_numeric(void **state)
{
        static const struct {
                const char *text;
                int result, family;
                bool loopback;
                const char *why;
        } rows[] = {
                { "127.0.0.1:80", 0, AF_INET, true, "the usual one" },
                { "127.9.9.9:0", 0, AF_INET, true, "all of 127/8 is this host" },
                { "localhost:80", 0, AF_INET, true, "the only name" },
                { "10.0.0.1:65535", 0, AF_INET, false, "another host" },
                { "0.0.0.0:80", 0, AF_INET, false, "every address of this host is not loopback" },
                { "[::1]:80", 0, AF_INET6, true, "loopback" },
                { "[2001:db8::1]:80", 0, AF_INET6, false, "brackets" },
                { "[fe80::1%lo]:80", 0, AF_INET6, false, "a link-local address has a scope" },
                { "unix:/run/x.sock", 0, AF_UNIX, true, "a socket's file" },
                { "unix:", -ENAMETOOLONG, 0, false, "no path" },
                { "::1:80", -EINVAL, 0, false, "without brackets: where would the port begin?" },
                { "[fe80::1%no-such-link]:80", -EINVAL, 0, false, "a scope that is not there" },
                { "example.org:80", -EINVAL, 0, false, "a name" },
                { "127.0.0.1:65536", -EINVAL, 0, false, "no port" },
                { "127.0.0.1:", -EINVAL, 0, false, "nor this" },
                { "127.0.0.1", -EINVAL, 0, false, "a port is wanted" },
                { ":80", -EINVAL, 0, false, "an address, too" },
                { "unix:/"
                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                  "aaaaaaaaaaaaaaaaa",
                  -ENAMETOOLONG, 0, false, "longer than a socket's path" },
                { "1111111111111111111111111111111111111111111111111111111111111111111111111111111111111:80",
                  -EINVAL, 0, false, "longer than any address" },
                { "[]:80", -EINVAL, 0, false, "brackets around nothing" },
                { "[::1:80", -EINVAL, 0, false, "a bracket that stays open" },
                { "[::x]:80", -EINVAL, 0, false, "no address in them" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct address a;
                int r = address_parse(rows[i].text, &a, NULL);

                if (r != rows[i].result || (r == 0 && (a.u.any.sa_family != rows[i].family ||
                                                       address_is_loopback(&a) != rows[i].loopback)))
                        fail_msg("'%s': %s", rows[i].text, rows[i].why);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(addresses_are_numeric) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

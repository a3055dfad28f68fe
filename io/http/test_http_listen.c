/* Addresses to sockets: which are refused and why, and who has the file of a UNIX socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/http/http_listen.h"

static char folder[] = "/tmp/remuda-listen-XXXXXX", path[64], address[80];

static int make_folder(void **state)
{
        (void) state;
        return mkdtemp(folder) != NULL && text_format(path, sizeof(path), "%s/s", folder) &&
                               text_format(address, sizeof(address), "unix:%s", path)
                       ? 0
                       : -1;
}

static int remove_folder(void **state)
{
        (void) state;
        return rmdir(folder); /* and no file is left */
}

#define LONG_64  "0123456789012345678901234567890123456789012345678901234567890123"
#define LONG_128 LONG_64 LONG_64

/* clang-format off */
static const struct { const char *what, *address; bool loopback_only; int result; const char *says; } rows[] = {
        { "a port of this machine",    "127.0.0.1:0",      true,  0,       "127.0.0.1:" },
        { "by its name",               "localhost:0",      true,  0,       "127.0.0.1:" },
        { "of the other family",       "[::1]:0",          true,  0,       "[::1]:" },
        { "every address",             ":0",               false, 0,       "0.0.0.0:" },
        { "every address, refused",    ":0",               true,  -EACCES, "':0' is not a loopback address" },
        { "no port",                   "127.0.0.1",        true,  -EINVAL, "'127.0.0.1' is no address to listen on" },
        { "a name",                    "host.example:80",  false, -EINVAL, "is no address to listen on" },
        { "too long",                  LONG_128 ":80",     false, -EINVAL, "is no address to listen on" },
        { "an address of nobody here", "192.0.2.1:0",      false, -EADDRNOTAVAIL, "listen on '192.0.2.1:0'" },
        { "a path that is not whole",  "unix:s",           true,  -EINVAL, "'s' is no socket path" },
        { "a path that is too long",   "unix:/" LONG_128,  true,  -EINVAL, "is no socket path: absolute, and at most 107 bytes" },
        { "a path to nowhere",         "unix:/no/such/folder/s", true, -ENOENT, "listen on 'unix:/no/such/folder/s'" },
};
/* clang-format on */

static void an_address_is_taken_or_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct http_listen listen = { .fd = -1 };
                struct err err = { 0 };
                int r = http_listen_open(rows[i].address, 0, rows[i].loopback_only, false, &listen, &err);

                if ((r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT) && rows[i].address[0] == '[')
                        continue; /* no IPv6 here */
                if (r != rows[i].result || strstr(r == 0 ? listen.address : err.msg, rows[i].says) == NULL)
                        fail_msg("%s: %d '%s' '%s'", rows[i].what, r, listen.address, err.msg);
                assert_true(r < 0 ||
                            (http_listen_is_there(&listen) && !text_ends_with(listen.address, ":0")));
                close_p(&listen.fd);
        }
}

static struct http_listen open_unix(mode_t mode, bool take_over)
{
        struct http_listen listen = { .fd = -1 };
        struct err err = { 0 };

        if (http_listen_open(address, mode, true, take_over, &listen, &err) < 0)
                fail_msg("%s", err.msg);
        assert_string_equal(listen.address, address);
        return listen;
}

/* Return: the server that a new caller comes to; NULL = nobody. */
static const struct http_listen *called(const struct http_listen *one, const struct http_listen *two)
{
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        CLEANUP(close_p) int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int heard;

        (void) text_copy(sa.sun_path, sizeof(sa.sun_path), path);
        if (connect(caller, (const struct sockaddr *) &sa, sizeof(sa)) < 0)
                return NULL;
        heard = accept4(two->fd, NULL, NULL, SOCK_CLOEXEC);
        if (heard >= 0) {
                (void) close(heard);
                return two;
        }
        heard = accept4(one->fd, NULL, NULL, SOCK_CLOEXEC);
        assert_true(heard >= 0);
        (void) close(heard);
        return one;
}

static void a_living_server_keeps_its_socket_unless_it_is_taken_over(void **state)
{
        struct http_listen first = open_unix(0, false), second = { .fd = -1 };
        struct stat st;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0660);
        assert_int_equal(http_listen_open(address, 0, true, false, &second, &err), -EADDRINUSE);
        assert_non_null(strstr(err.msg, "Address already in use"));
        second = open_unix(0600, true);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_ptr_equal(called(&first, &second), &second);
        assert_true(http_listen_is_there(&second));
        assert_false(http_listen_is_there(&first));
        http_listen_remove(&first); /* which is not its own any more */
        assert_true(http_listen_is_there(&second));
        http_listen_remove(&second);
        assert_int_equal(access(path, F_OK), -1);
        close_p(&first.fd);
        close_p(&second.fd);
}

static void what_a_dead_server_left_is_replaced(void **state)
{
        struct http_listen dead = open_unix(0, false), living;
        struct sockaddr_un beside = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void) state;
        (void) text_format(beside.sun_path, sizeof(beside.sun_path), "%s.1", path); /* and its half */
        assert_int_equal(bind(fd, (const struct sockaddr *) &beside, sizeof(beside)), 0);
        (void) close(fd);
        close_p(&dead.fd);
        living = open_unix(0, false);
        assert_int_equal(access(beside.sun_path, F_OK), -1);
        assert_ptr_equal(called(&dead, &living), &living);
        http_listen_remove(&living);
        close_p(&living.fd);
}

static void a_file_that_is_no_socket_stays(void **state)
{
        struct http_listen listen = { .fd = -1 };
        struct err err = { 0 };
        FILE *file = fopen(path, "we");

        (void) state;
        assert_non_null(file);
        (void) fclose(file);
        assert_int_equal(http_listen_open(address, 0, true, true, &listen, &err), -EADDRINUSE);
        assert_int_equal(unlink(path), 0);
}

static void descriptors_are_asked_for_up_to_the_hard_limit(void **state)
{
        struct rlimit before, limit;

        (void) state;
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        limit = (struct rlimit){ .rlim_cur = 64, .rlim_max = before.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(http_listen_descriptors(100), 100); /* the soft limit is raised */
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_true(limit.rlim_cur >= 228);
        assert_int_equal(http_listen_descriptors(10), 10);
        if (before.rlim_max > 256 && before.rlim_max < 1u << 31) /* else there is no hard limit to speak of */
                assert_int_equal(http_listen_descriptors(1u << 31), (unsigned) (before.rlim_max - 128));
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_address_is_taken_or_refused),
                cmocka_unit_test(a_living_server_keeps_its_socket_unless_it_is_taken_over),
                cmocka_unit_test(what_a_dead_server_left_is_replaced),
                cmocka_unit_test(a_file_that_is_no_socket_stays),
                cmocka_unit_test(descriptors_are_asked_for_up_to_the_hard_limit),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

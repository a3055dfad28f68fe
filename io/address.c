/* Brackets, ports and scopes. */
#include "io/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"

static int parse_unix(const char *path, struct address *ret, struct err *err)
{
        size_t n = strlen(path);

        if (n == 0 || n >= sizeof(ret->u.local.sun_path))
                return err_set(err, -ENAMETOOLONG, "socket path '%s' must have 1 to %zu bytes", path,
                               sizeof(ret->u.local.sun_path) - 1);
        ret->u.local.sun_family = AF_UNIX;
        memcpy(ret->u.local.sun_path, path, n + 1);
        ret->size = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + n + 1);
        return 0;
}

static bool set_in(const char *host, uint16_t port, struct address *ret)
{
        ret->u.in.sin_family = AF_INET;
        ret->u.in.sin_port = htons(port);
        ret->size = sizeof(ret->u.in);
        return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &ret->u.in.sin_addr) ==
               1;
}

/* @host: without its brackets; cut at its scope */
static bool set_in6(char *host, uint16_t port, struct address *ret)
{
        char *scope = strchr(host, '%');

        ret->u.in6.sin6_family = AF_INET6;
        ret->u.in6.sin6_port = htons(port);
        ret->size = sizeof(ret->u.in6);
        if (scope != NULL) {
                *scope = '\0';
                ret->u.in6.sin6_scope_id = if_nametoindex(scope + 1);
                if (ret->u.in6.sin6_scope_id == 0)
                        return false;
        }
        return inet_pton(AF_INET6, host, &ret->u.in6.sin6_addr) == 1;
}

static int parse_inet(const char *text, struct address *ret, struct err *err)
{
        const char *colon = strrchr(text, ':');
        char host[80];
        uint64_t port = 0;
        size_t n;
        bool known;

        if (colon == NULL || text_parse_uint64(colon + 1, &port) < 0 || port > UINT16_MAX)
                return err_set(err, -EINVAL, "address '%s' is not unix:PATH or ADDRESS:PORT", text);
        n = (size_t) (colon - text);
        if (!text_format(host, sizeof(host), "%.*s", (int) n, text))
                return err_set(err, -EINVAL, "address '%s' is too long", text);
        if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
                host[n - 1] = '\0';
                known = set_in6(host + 1, (uint16_t) port, ret);
        } else
                known = set_in(host, (uint16_t) port, ret);
        return known ? 0 : err_set(err, -EINVAL, "address '%s' is not numeric", text);
}

int address_parse(const char *text, struct address *ret, struct err *err)
{
        *ret = (struct address){ 0 };
        return text_starts_with(text, "unix:") ? parse_unix(text + strlen("unix:"), ret, err)
                                               : parse_inet(text, ret, err);
}

bool address_is_loopback(const struct address *a)
{
        if (a->u.any.sa_family == AF_INET)
                return ntohl(a->u.in.sin_addr.s_addr) >> 24 == 127;
        return a->u.any.sa_family != AF_INET6 || IN6_IS_ADDR_LOOPBACK(&a->u.in6.sin6_addr);
}

/* What a peer sends is checked before anybody reads it: how large it is, how many there are, what becomes a
 * name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/launcher/message.h"
#include "job/launcher/rendezvous.pb-c.h"

/* NULL: it is taken. */
static void expect(const void *message, const char *says)
{
        const ProtobufCMessageDescriptor *of = ((const ProtobufCMessage *) message)->descriptor;
        struct pb_arena arena;
        struct err err = { 0 };
        size_t size;
        CLEANUP(free_p) uint8_t *bytes = pb_pack(message, &size);
        const void *read;

        assert_non_null(bytes);
        read = message_read(&arena, of, bytes, size, &err);
        if ((read != NULL) != (says == NULL) || strstr(err.msg, says == NULL ? "" : says) == NULL ||
            (says != NULL && err.code != -EBADMSG))
                fail_msg("want '%s', got '%s'", says == NULL ? "" : says, err.msg);
        pb_arena_free(&arena);
}

static void names_are_those_of_hosts(void **state)
{
        Rendezvous__Start start = RENDEZVOUS__START__INIT;
        Rendezvous__Answer answer = RENDEZVOUS__ANSWER__INIT;

        (void) state;
        start.host = (char *) "g1";
        expect(&start, NULL);
        start.host = (char *) "../g1";
        expect(&start, "host: '../g1' is not 1 to 63 small letters, digits and '-'");
        answer.group = (char *) "";
        expect(&answer, "group: '' is not 1 to 63 small letters");
}

static void lists_have_an_end(void **state)
{
        char word[] = "x", *words[513];
        Rendezvous__Start start = RENDEZVOUS__START__INIT;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                words[i] = word;
        start.host = (char *) "g1";
        start.argv = words;
        start.n_argv = ARRAY_SIZE(words) - 1;
        expect(&start, NULL);
        start.n_argv++;
        expect(&start, "argv: 513 of them is not in 0..512");
}

static void a_message_has_an_end(void **state)
{
        static char text[MESSAGE_MAX_BYTES + 1];
        Rendezvous__End end = RENDEZVOUS__END__INIT;

        (void) state;
        memset(text, 'x', sizeof(text) - 1);
        end.message = text;
        expect(&end, "a larger one than any may be");
        text[sizeof(text) - 16] = '\0';
        expect(&end, NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_are_those_of_hosts),
                cmocka_unit_test(lists_have_an_end),
                cmocka_unit_test(a_message_has_an_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

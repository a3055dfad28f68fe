/* The steps of a job's data: each with its values at their limits, and every text that is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/spec/preprocess_steps.h"

static struct preprocess_steps steps_of(const char *spec)
{
        struct preprocess_steps p;
        struct err err = { 0 };

        if (preprocess_steps_parse(spec, &p, &err) < 0)
                fail_msg("%s", err.msg);
        return p;
}

static void steps_say_what_they_say(void **state)
{
        struct preprocess_steps p = steps_of("resize:32x48,flip,crop,scale");

        (void) state;
        assert_int_equal(p.height, 32);
        assert_int_equal(p.width, 48);
        assert_true(p.flip == 0.5);
        assert_int_equal(p.crop, 2);
        assert_true(p.scale && p.of_images && !p.of_text);
        p = steps_of("flip:0.25,crop:1024,normalise");
        assert_true(p.flip == 0.25 && !p.scale);
        assert_int_equal(p.crop, 1024);
        assert_true(steps_of("flip:0").flip == 0 && steps_of("flip:1").flip == 1);
        assert_true(steps_of("tokenise:byte").bytes && steps_of("tokenise:byte").of_text);
        assert_true(!steps_of("tokenise:word").bytes && !steps_of("tokenise:word").of_images);
        assert_true(steps_of("tokenise:wordpiece").pieces && !steps_of("tokenise:word").pieces);
        assert_true(!steps_of(NULL).of_images && !steps_of("").of_text);
}

static void each_wrong_step_is_named(void **state)
{
        static const char *const wrong[] = {
                "resize",         "resize:",      "resize:32",   "resize:x32",
                "resize:32x",     "resize:0x32",  "resize:32x0", "resize:99999x1",
                "resize:1x99999", "resize:-1x32", "flip:",       "flip:-0.1",
                "flip:1.5",       "flip:often",   "crop:",       "crop:1025",
                "crop:-1",        "scale:2",      "normalise:2", "tokenise",
                "tokenise:bit",   "grey",         "tokenise:",   "resize:12345678901234567x1",
        };
        struct preprocess_steps p = { .crop = 7 };
        struct err err;
        char sentence[240];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                if (preprocess_steps_parse(wrong[i], &p, &err) != -EINVAL || p.crop != 7)
                        fail_msg("'%s' was taken", wrong[i]);
                (void) text_format(sentence, sizeof(sentence),
                                   "step '%s': resize:HxW, normalise, scale, flip[:P], crop[:N] or "
                                   "tokenise:word|byte|wordpiece is wanted, with commas between",
                                   wrong[i]);
                assert_string_equal(err.msg, sentence);
        }
        assert_int_equal(preprocess_steps_parse("scale,", &p, &err), -EINVAL);
}

static void steps_fit_what_the_model_reads(void **state)
{
        struct preprocess_steps image = steps_of("scale"), text = steps_of("tokenise:byte");
        struct err err;

        (void) state;
        assert_int_equal(preprocess_steps_fit(&image, false, &err), 0);
        assert_int_equal(preprocess_steps_fit(&text, true, &err), 0);
        assert_int_equal(preprocess_steps_fit(&image, true, &err), -EINVAL);
        assert_string_equal(err.msg,
                            "text has no pixels: only tokenise:word|byte|wordpiece is for a model of text");
        assert_int_equal(preprocess_steps_fit(&text, false, &err), -EINVAL);
        assert_string_equal(err.msg, "step 'tokenise' is for text, this model is of images");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(steps_say_what_they_say),
                cmocka_unit_test(each_wrong_step_is_named),
                cmocka_unit_test(steps_fit_what_the_model_reads),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

"""Every example on the pages of this scheduler runs and prints the documented output."""

from tests.docs.running import examples_of

test_the_examples_of_a_page_do_what_it_says = examples_of("credit")

"""The validation rule for the literals of a document, whose errors are those of variables with the same values."""

from graphql import SKIP, GraphQLError, GraphQLInputType, ValueNode, VisitorAction, value_from_ast_untyped
from graphql.utilities import validate_input_literal
from graphql.validation import ValuesOfCorrectTypeRule

from schema.values.input_errors import RefusedValue, place_of


class ArgumentValuesRule(ValuesOfCorrectTypeRule):
    """graphql-core's rule, with the code, the field and the expectation in the extensions of each error."""

    def is_valid_value_node(self, node: ValueNode, input_type: GraphQLInputType | None) -> VisitorAction:
        """Reports the errors of one literal with all literals in it."""
        if input_type is None:
            return SKIP
        refused: RefusedValue | None = None

        def report(error: GraphQLError, path: list[str | int]) -> None:
            nonlocal refused
            refused = refused or RefusedValue(place_of(node), input_type, value_from_ast_untyped(node))
            error.extensions = refused.explain(error, path)
            self.report_error(error)

        validate_input_literal(node, input_type, report, hide_suggestions=self.context.hide_suggestions)
        return SKIP

"""Lists all that a policy may be made of: Spark's functions, and the classes of its parsed and analysed plans.

A name that is not here is refused, so a function or a kind of plan that a later Spark brings is refused too, until
somebody has looked at it. Checked with PySpark 4.1 to 4.3.
"""

from collections.abc import Mapping

_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
_ANALYSIS = "org.apache.spark.sql.catalyst.analysis"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_AGGREGATES = f"{_EXPRESSIONS}.aggregate"
_JOINS = "org.apache.spark.sql.catalyst.plans"


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _names(package: str, text: str) -> frozenset[str]:
    return frozenset(f"{package}.{name}" for name in _set(text))


# Arithmetic, texts, dates, conditions, lists, maps, structs, aggregates and windows: of values that are given to them,
# and of nothing else. Not: JSON, XML, CSV, Avro, URLs, sketches, encryption, and whatever asks Java, the session or the
# machine, leaves the answer to chance, or asks the clock (`unix_timestamp()` does).
FUNCTIONS = _set(
    """
    any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and bool_or
    collect_list collect_set corr count count_if covar_pop covar_samp every first first_value grouping grouping_id
    kurtosis last last_value listagg max max_by mean median min min_by mode percentile percentile_approx percentile_cont
    percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness
    some std stddev stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance

    array array_append array_compact array_contains array_distinct array_except array_insert array_intersect array_join
    array_max array_min array_position array_prepend array_remove array_repeat array_size array_union arrays_overlap
    arrays_zip flatten get sequence slice sort_array cardinality concat element_at reverse size try_element_at
    aggregate array_sort exists filter forall map_filter map_zip_with reduce transform transform_keys transform_values
    zip_with map map_concat map_contains_key map_entries map_from_arrays map_from_entries map_keys map_values str_to_map
    named_struct struct explode explode_outer inline inline_outer posexplode posexplode_outer stack

    between coalesce if ifnull nanvl nullif nullifzero nvl nvl2 when zeroifnull equal_null in isnan isnotnull isnull not
    bigint binary boolean cast date decimal double float int smallint string timestamp tinyint typeof

    abs acos acosh asin asinh atan atan2 atanh bin bit_count bit_get bround cbrt ceil ceiling conv cos cosh cot csc
    degrees div e exp expm1 factorial floor getbit greatest hex hypot least ln log log10 log1p log2 mod negative pi pmod
    positive pow power radians rint round sec shiftleft shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh
    try_add try_divide try_mod try_multiply try_subtract unhex width_bucket crc32 hash md5 sha sha1 sha2 xxhash64

    add_months convert_timezone date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd
    datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour last_day
    make_date make_dt_interval make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval
    minute month monthname months_between next_day quarter second timestamp_micros timestamp_millis timestamp_seconds
    to_date to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc try_make_interval
    try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_to_date try_to_timestamp unix_date unix_micros
    unix_millis unix_seconds weekday weekofyear year

    ascii base64 bit_length btrim char char_length character_length chr concat_ws contains decode elt encode endswith
    find_in_set format_number format_string ilike initcap instr is_valid_utf8 jaro_winkler_similarity lcase left len
    length levenshtein like locate lower lpad ltrim luhn_check make_valid_utf8 mask octet_length overlay position printf
    quote regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr
    repeat replace right rlike rpad rtrim sentences soundex space split split_part startswith substr substring
    substring_index to_binary to_char to_number to_varchar translate trim try_to_binary try_to_number try_validate_utf8
    ucase unbase64 upper validate_utf8

    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number
    """
)
TABLE_FUNCTIONS = _set("explode explode_outer inline inline_outer posexplode posexplode_outer range stack")

_CHANCE = "the same plan must always get the same answer: {} leaves it to chance"
_CLOCK = "the same plan must always get the same answer: {} asks the clock"
REASONS: Mapping[str, str] = {
    **dict.fromkeys(_set("rand random randn randstr uniform uuid shuffle Rand Randn Uuid Sample Uniform"), _CHANCE),
    **dict.fromkeys(_set("now curdate current_date current_time current_timestamp localtime localtimestamp"), _CLOCK),
    **dict.fromkeys(_set("unix_timestamp CurrentDate CurrentTime CurrentTimestamp Now LocalTimestamp"), _CLOCK),
}
"""Why a function or a class is refused, where it is not that it reaches out of the plan's tables."""

RELATION = f"{_ANALYSIS}.UnresolvedRelation"
FUNCTION = f"{_ANALYSIS}.UnresolvedFunction"
GENERATOR = f"{_ANALYSIS}.UnresolvedGenerator"
TABLE_FUNCTION = f"{_ANALYSIS}.UnresolvedTableValuedFunction"
CAST = f"{_EXPRESSIONS}.Cast"
LITERAL = f"{_EXPRESSIONS}.Literal"
SUBQUERIES = _names(_EXPRESSIONS, "Exists LateralSubquery ListQuery ScalarSubquery")

_NODES = _names(
    _PLANS,
    """
    Aggregate Distinct Except Filter Generate GlobalLimit Intersect Join LateralJoin LocalLimit Offset OneRowRelation
    Pivot Project RepartitionByExpression Sort SubqueryAlias Union Unpivot UnresolvedWith WithWindowDefinition
    """,
)
_UNRESOLVED = _names(
    _ANALYSIS,
    """
    ResolvedInlineTable UnresolvedAlias UnresolvedAttribute UnresolvedExtractValue UnresolvedFunction
    UnresolvedGenerator UnresolvedHaving UnresolvedInlineTable UnresolvedOrdinal UnresolvedQualify UnresolvedRelation
    UnresolvedStar UnresolvedStarExceptOrReplace UnresolvedSubqueryColumnAliases UnresolvedTableValuedFunction
    """,
)
_SIGNS = _names(
    _EXPRESSIONS,
    """
    Add Alias And BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CaseWhen Cast Coalesce Concat CreateNamedStruct Cube
    CurrentRow$ Divide EqualNullSafe EqualTo Exists GreaterThan GreaterThanOrEqual GroupingSets ILike In InSubquery
    IntegralDivide IsNotNull IsNotUnknown$$anon$2 IsNull IsUnknown$$anon$1 LambdaFunction LateralSubquery LessThan
    LessThanOrEqual Like LikeAll LikeAny ListQuery Literal Multiply NamedArgumentExpression Not NotLikeAll NotLikeAny
    Or Overlay RLike Remainder Rollup ScalarSubquery ShiftLeft ShiftRight ShiftRightUnsigned SortOrder
    SpecifiedWindowFrame StringLocate StringTrim StringTrimLeft StringTrimRight Substring Subtract TimestampAdd
    TimestampDiff UnaryMinus UnaryPositive UnboundedFollowing$ UnboundedPreceding$ UnresolvedNamedLambdaVariable
    UnresolvedWindowExpression UnspecifiedFrame$ WindowExpression WindowSpecDefinition
    """,
) | _names(_AGGREGATES, "AggregateExpression AnyValue First Last")
PARSED = _NODES | _UNRESOLVED | _SIGNS
"""Classes of nodes and expressions of a parsed plan."""

PARTS = (
    _names("scala", "None$ Some Tuple2 Tuple3")
    | _names("org.apache.spark.sql.catalyst", "AliasIdentifier FunctionIdentifier")
    | _names(
        _EXPRESSIONS,
        "Ascending$ Descending$ ExprId NullsFirst$ NullsLast$ NumericEvalContext RangeFrame$ RowFrame$ "
        "WindowSpecReference",
    )
    | _names(_AGGREGATES, "Complete$")
    | _names(_JOINS, "Cross$ FullOuter$ Inner$ LeftAnti$ LeftOuter$ LeftSemi$ NaturalJoin RightOuter$ UsingJoin")
    | _names(_PLANS, "JoinHint")
)
"""Classes that stand between nodes and hold others."""
HOLDERS = "scala.collection.immutable."
"""What the names of Scala's lists, vectors and maps begin with."""
OPTIONS = "org.apache.spark.sql.util.CaseInsensitiveStringMap"
"""A table's options, which have to be empty."""
LEAVES = frozenset(
    {
        "java.util.UUID",
        "org.apache.spark.sql.types.Decimal",
        "org.apache.spark.unsafe.types.CalendarInterval",
        "org.apache.spark.unsafe.types.UTF8String",
        "scala.Enumeration$Val",
    }
)
TYPES = "org.apache.spark.sql.types."
"""What the names of types begin with, which hold no query."""

ANALYSED_NODES = _names(
    _PLANS,
    """
        Aggregate CTERelationDef CTERelationRef Distinct Except Expand Filter Generate GlobalLimit Intersect Join
        LateralJoin LocalLimit LocalRelation Offset OneRowRelation Project Range RepartitionByExpression Sort
        SubqueryAlias Union View Window WithCTE
        """,
) | frozenset({"org.apache.spark.sql.execution.LogicalRDD"})
"""What tables given in memory, and queries over them, are made of once they are analysed."""
ANALYSED_EXPRESSIONS = (
    _SIGNS
    | _names(
        _EXPRESSIONS,
        """
        AttributeReference BinaryPad BinaryPredicate Ceil CommonExpressionDef CommonExpressionRef Contains
        CurrentTimeZone DateAddYMInterval DatetimeSub DivideYMInterval EndsWith Explode ExtractANSIIntervalDays
        ExtractANSIIntervalHours ExtractANSIIntervalMinutes ExtractANSIIntervalMonths ExtractANSIIntervalSeconds
        ExtractANSIIntervalYears Floor GetArrayItem GetArrayStructFields GetMapValue GetStructField GroupingID Grouping
        Hour Inline MakeTimestamp MakeTimestampFromDateTime MakeTimestampNTZ Mask Minute MultiplyDTInterval
        MultiplyYMInterval DivideDTInterval NamedLambdaVariable NullIfResult OuterReference PosExplode RoundCeil
        RoundFloor Second SecondWithFraction StartsWith StringDecode StringInstr StringInstrWithOccurrence StringLPad
        StringRPad SubtractDates SubtractTimestamps TimestampAddInterval TimestampAddYMInterval DateAddInterval
        ToCharacter TryEval TryMakeTimestamp TryMakeTimestampFromDateTime With
        """,
    )
    | _names(_AGGREGATES, "MaxBy MaxMinByK MinBy Mode PercentileCont PercentileDisc PivotFirst")
)
"""Classes of analysed expressions, beside those that the allowed FUNCTIONS are."""
